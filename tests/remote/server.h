#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/log.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "remote/remote_environments.h"
#include "tests/catch.h"

namespace fuse {

// A real server on this machine whose answers the test writes, and a client of
// it.  Requests are kept in order.
class TestServer {
 public:
  explicit TestServer(HttpHandler handler) : handler_(std::move(handler)) {
    auto server = HttpServer::listen(
        TcpEndpoint{}, {},
        [this](const HttpRequest& request) {
          {
            const std::scoped_lock lock(mutex_);
            requests_.push_back(request);
          }
          return handler_(request);
        },
        log_);
    REQUIRE(server);
    server_ = std::move(*server);
  }

  [[nodiscard]] std::string place() const { return server_->place(); }

  std::unique_ptr<RemoteEnvironments> client(RemoteOptions options = {},
                                             const std::string& token = "") {
    auto http = make_http_client({.base_url = place(), .token = token});
    REQUIRE(http);
    return std::make_unique<RemoteEnvironments>(std::move(*http), clock_, std::move(options));
  }

  std::vector<HttpRequest> requests() {
    const std::scoped_lock lock(mutex_);
    return requests_;
  }
  // "GET /v1/environments?limit=2", in the order in which they came.
  std::vector<std::string> lines() {
    std::vector<std::string> lines;
    for (const HttpRequest& request : requests()) {
      lines.push_back(request.method + " " + request.target);
    }
    return lines;
  }

 private:
  SystemClock clock_{};
  NullLog log_{};
  HttpHandler handler_;
  std::mutex mutex_;
  std::vector<HttpRequest> requests_{};
  std::unique_ptr<HttpServer> server_{};
};

}  // namespace fuse
