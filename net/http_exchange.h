#pragma once

#include <memory>
#include <optional>
#include <stop_token>
#include <variant>

#include "net/http.h"
#include "net/http_head.h"
#include "net/http_server.h"
#include "net/socket_stream.h"

namespace fuse {

// A request whose head is read and whose body may not be.
struct IncomingRequest {
  HttpRequest request{};
  BodyFraming framing{};
  bool body_read = false;
  bool keep_alive = true;
  bool http_1_0 = false;
};

// A request that is answered without asking the handler.
struct RefusedRequest {
  Error error{};
  int status = 0;
};

// Nothing to answer: the client left, sat idle or was too slow.
struct NoRequest {};

using HeadOutcome = std::variant<IncomingRequest, RefusedRequest, NoRequest>;

// The server's side of HTTP/1.1 on one connection: reads requests, writes answers.
class HttpExchange {
 public:
  HttpExchange(SocketStream& stream, const HttpPeer& peer, const HttpServerOptions& options)
      : stream_(stream), peer_(peer), options_(options) {}

  // Whether a first byte of the next request came within `patience`.
  bool wait_for_request(std::chrono::milliseconds patience);
  HeadOutcome read_head();
  // Reads the body, answering an Expect first.  A refusal says what was wrong.
  std::optional<RefusedRequest> read_body(IncomingRequest& incoming, std::size_t most);

  enum class After { keep, close };
  // Writes an answer that is no upgrade; `keep` when another request may follow.
  After write(const IncomingRequest& incoming, HttpResponse response, std::stop_token stop);
  // The server's own refusal.  Always followed by closing.
  void refuse(const RefusedRequest& refused);
  // The 101 and nothing else.
  Result<void> write_upgrade_head(const std::string& protocol);

 private:
  std::optional<RefusedRequest> read_length(IncomingRequest& incoming);
  std::optional<RefusedRequest> read_chunked(IncomingRequest& incoming, std::size_t most);
  std::optional<RefusedRequest> more_body(std::chrono::steady_clock::time_point deadline);
  std::chrono::steady_clock::time_point body_deadline() const;
  HttpHeaders complete_headers(const HttpResponse& response) const;
  After write_body(const IncomingRequest& incoming, const HttpResponse& response, std::string head);
  After write_stream(const IncomingRequest& incoming, const HttpResponse& response,
                     std::string head, std::stop_token stop);

  SocketStream& stream_;
  const HttpPeer& peer_;
  const HttpServerOptions& options_;
};

// The text of a body that is too large.
Error body_too_large(std::size_t most);

}  // namespace fuse
