#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <variant>

#include "base/host.h"
#include "base/log.h"
#include "net/http.h"

namespace fuse {

struct TcpEndpoint {
  std::string host = "127.0.0.1";
  std::uint16_t port = 0;  // 0: the kernel picks
};
// The socket file is 0600 and replaces one that nobody listens on.
struct UnixEndpoint {
  fs::path path{};
};
using HttpEndpoint = std::variant<TcpEndpoint, UnixEndpoint>;

struct TlsFiles {
  fs::path certificate{};  // PEM, with its chain
  fs::path key{};
};

struct HttpServerOptions {
  // One thread each while in use; a connection beyond them is answered 503.
  std::size_t most_connections = 512;
  std::size_t most_head = 64U << 10U;
  std::size_t most_body = 1U << 20U;
  // Instead of most_body, by request (its body is still empty).
  std::function<std::size_t(const HttpRequest&)> body_limit{};
  // Called once the head is read; an answer from it is sent without reading the
  // body (wrong token, no such route, a length that is not acceptable).
  std::function<std::optional<HttpResponse>(const HttpRequest&)> before_body{};
  // How a refusal of the server's own is put: a malformed request, one too
  // large.
  std::function<HttpResponse(const Error&)> error_answer{};  // default: error_response
  HttpHeaders headers{};                                     // on every answer, as `Server`
  bool only_own_user = false;  // on a unix socket: others are dropped unanswered
  std::optional<TlsFiles> tls{};

  std::chrono::milliseconds head_time{std::chrono::seconds(15)};   // for a whole head
  std::chrono::milliseconds body_time{std::chrono::seconds(60)};   // for a whole body; 0: none
  std::chrono::milliseconds stall_time{std::chrono::seconds(60)};  // without a byte moving
  std::chrono::milliseconds idle_time{std::chrono::seconds(60)};   // between two requests
};

// Answers HTTP/1.1 on one endpoint, from the moment it is made.  The handler is
// called from several threads at a time; one that throws is answered 500.  From the
// first connection on the process ignores SIGPIPE.
class HttpServer {
 public:
  static Result<std::unique_ptr<HttpServer>> listen(const HttpEndpoint& endpoint,
                                                    HttpServerOptions options, HttpHandler handler,
                                                    Log& log);
  virtual ~HttpServer() = default;  // stops it

  [[nodiscard]] virtual std::uint16_t port() const = 0;  // 0 on a unix socket
  // "http://127.0.0.1:8080", "unix:/run/x.sock".
  [[nodiscard]] virtual std::string place() const = 0;
  // Takes no more connections, asks streams and upgrades to end, lets the calls
  // in hand finish for `grace`, then cuts their connections and waits for the
  // threads.  Once; later calls return at once.  Not from a handler.
  virtual void stop(std::chrono::milliseconds grace) = 0;
};

}  // namespace fuse
