#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "hostmode/http.h"

// The routes of the agent's HTTP API; private to this folder.
namespace fuse {

// One request on its way to its route.
struct AgentCall {
  const AgentSite& site;
  const HttpRequest& request;
  const std::map<std::string, std::string>& params;

  // The id in the path: a vm_id in any spelling, or a uid.
  [[nodiscard]] const std::string& vm() const { return params.at("id"); }
};

using AgentRoute = HttpResponse (*)(const AgentCall& call);

struct AgentRouteEntry {
  std::string_view method;
  std::string_view pattern;
  std::string_view action;
  AgentRoute run = nullptr;
};

std::vector<AgentRouteEntry> host_agent_routes();
std::vector<AgentRouteEntry> vm_routes();
std::vector<AgentRouteEntry> guest_routes();
std::vector<AgentRouteEntry> job_routes();

// A request's JSON object, {} for an empty body; invalid_argument "bad JSON: ..."
// when it is none.
Result<nlohmann::json> object_of(const HttpRequest& request);

HttpResponse agent_answer(int status, const nlohmann::ordered_json& value);
HttpResponse nothing_more();

}  // namespace fuse
