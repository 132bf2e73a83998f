#pragma once

#include <chrono>
#include <cstddef>

#include "net/http.h"
#include "orchestrator/api/environment_api.h"
#include "orchestrator/fleet_view.h"

namespace fuse {

// What the HTTP API is in front of.
struct ApiBackends {
  EnvironmentApi& environments;
  FleetView& fleet;
  std::chrono::milliseconds keepalive{std::chrono::seconds(15)};  // of event streams
};

// The HTTP API as one function; the backends must outlive it.  It does not ask
// who is calling: it is for sockets that only their owner can reach.
HttpHandler make_api_handler(ApiBackends backends);

// How long a request's body may be; for HttpServerOptions::body_limit.
std::size_t api_body_limit(const HttpRequest& request);

// On every answer, also those of the server itself.
HttpHeaders api_headers();

}  // namespace fuse
