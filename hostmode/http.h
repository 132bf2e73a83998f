#pragma once

#include <cstddef>
#include <functional>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "hostmode/metrics.h"
#include "net/http.h"
#include "net/http_server.h"
#include "orchestrator/api/host_agent.h"

namespace fuse {

// What the agent's HTTP API is in front of, and how it meets its callers.
struct AgentSite {
  HostAgent agent;
  AgentMetrics& metrics;
  Log& log;  // a line for each request: never a query, a header or a body
  const Clock& clock;
  std::string token{};  // every route wants it
  std::size_t most_body = std::size_t{1} << 20U;
  std::size_t most_upload = std::size_t{64} << 20U;
  // UUIDs of the GPUs and MIG instances that VMs have, for the metrics.
  std::function<std::set<std::string>()> devices_in_use{};
};

// The agent's HTTP API as one function; what the site refers to must outlive it.
// Errors are plain text, answers JSON.
HttpHandler make_agent_handler(const AgentSite& site);

// How the server before it is set up: what is wrong with a request by its head
// alone, the token first, is answered without reading its body.
HttpServerOptions agent_server_options(const AgentSite& site);

}  // namespace fuse
