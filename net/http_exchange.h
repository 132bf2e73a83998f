#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>

#include "base/log.h"
#include "net/http.h"
#include "net/http_server.h"
#include "net/socket_stream.h"

namespace fuse {

// What answers a server's requests, and how.
struct HttpSite {
  HttpServerOptions options{};  // with an error_answer
  HttpHandler handler{};
  Log& log;
};

// The server's side of HTTP/1.1 on one connection: cpp-httplib reads requests and
// writes answers.
class HttpExchange {
 public:
  // All of them outlive it.
  static std::unique_ptr<HttpExchange> on(SocketStream& connection, const HttpPeer& peer,
                                          const HttpSite& site);
  virtual ~HttpExchange() = default;

  enum class After {
    keep,     // another request may follow
    close,    // say goodbye and close
    drop,     // close: there was no request, its client left, sat idle or was too slow
    upgrade,  // the 101 is sent; upgraded() has the rest
  };
  // Reads a request and answers it.  `stop` goes into the request; the connection
  // is kept only when `stopping` does not hold by then.
  virtual After serve(std::stop_token stop, const std::function<bool()>& stopping) = 0;
  [[nodiscard]] virtual const HttpResponse::Upgrade& upgraded() const = 0;
  // An answer to no request in particular.  Always followed by closing.
  virtual void refuse(const Error& error, int status) = 0;
};

}  // namespace fuse
