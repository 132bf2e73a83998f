#pragma once

#include <chrono>
#include <cstddef>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "net/http.h"
#include "orchestrator/api/environment_api.h"
#include "orchestrator/api/host_api.h"
#include "orchestrator/callers.h"

namespace fuse {

// What the HTTP API is in front of.
struct ApiBackends {
  EnvironmentApi& environments;
  HostApi& hosts;
  Callers& callers;
  Metrics& metrics;
  Clock& clock;
  Log& log;
  std::chrono::milliseconds keepalive{std::chrono::seconds(15)};  // of event streams
};

// The HTTP API as one function; the backends must outlive it.
HttpHandler make_api_handler(ApiBackends backends);

// How long a request's body may be; for HttpServerOptions::body_limit.
std::size_t api_body_limit(const HttpRequest& request);

// On every answer, also those of the server itself.
HttpHeaders api_headers();

}  // namespace fuse
