#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/byte_stream.h"
#include "net/headers.h"
#include "net/url.h"

namespace fuse {

// Who sent a request.  On a unix socket uid and pid are the kernel's word.
struct HttpPeer {
  std::string ip{};  // empty on a unix socket
  std::uint16_t port = 0;
  std::optional<uid_t> uid{};
  std::optional<pid_t> pid{};
  bool tls = false;
};

struct HttpRequest {
  std::string method{};
  std::string target{};    // as sent: path and query, still encoded
  std::string raw_path{};  // target up to the `?`
  std::string path{};      // raw_path, percent-decoded
  Query query{};
  HttpHeaders headers{};
  std::string body{};
  HttpPeer peer{};
  std::map<std::string, std::string> params{};  // of the route, decoded; set by its dispatcher
  // Requested when the client hangs up or the server stops, also while a
  // handler works on the answer.
  std::stop_token stop{};
};

// Where a handler writes an answer that has no end yet.
class HttpStream {
 public:
  virtual ~HttpStream() = default;
  // Sends it at once.  False when the client is gone, takes nothing for longer
  // than the server's stall time, or the server stops: then return.
  virtual bool write(std::string_view bytes) = 0;
  // Requested in the same cases, also while there is nothing to write.
  [[nodiscard]] virtual std::stop_token stop() const = 0;
};

// What a handler answers: a body; or a stream, whose function runs once the
// head is sent; or an upgrade, whose function owns the connection after the
// 101.  Both functions run in the request's own thread and the connection ends
// with them (a stream's may be kept alive).
struct HttpResponse {
  struct Upgrade {
    std::string protocol{};
    std::function<void(ByteStream& connection)> run{};
  };

  int status = 200;
  HttpHeaders headers{};
  std::string body{};
  std::function<void(HttpStream& out)> stream{};
  std::optional<Upgrade> upgrade{};
};

using HttpHandler = std::function<HttpResponse(const HttpRequest&)>;

// A request value from its parts, as the server makes it: for tests and for
// calling a handler without a socket.
HttpRequest make_request(std::string method, std::string target, std::string body = {},
                         HttpHeaders headers = {});

// A JSON body ends in a newline; one is added to a body without.
HttpResponse json_response(int status, std::string body);
HttpResponse text_response(int status, std::string body);

// {"error":{"code","message","details"?}} with the code's status. `unreachable`
// is written as code "internal".
HttpResponse error_response(const Error& error);
HttpResponse error_response(const Error& error, int status);
// The host agent's form: the message alone as text/plain.
HttpResponse text_error_response(const Error& error);

}  // namespace fuse
