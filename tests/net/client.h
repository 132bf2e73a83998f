#pragma once

#include <memory>
#include <utility>

#include "net/http_client.h"
#include "tests/catch.h"
#include "tests/net/wire.h"

namespace fuse {

inline std::unique_ptr<HttpClient> client_of(HttpClientOptions options) {
  auto client = make_http_client(std::move(options));
  if (!client) FAIL(client.error().message);
  return *std::move(client);
}

inline std::unique_ptr<HttpClient> client_of(const TestServer& test) {
  return client_of({.base_url = test.url(), .timeout = watchdog});
}

}  // namespace fuse
