#include <nlohmann/json.hpp>

#include "base/version.h"
#include "orchestrator/http_routes.h"

namespace fuse {

namespace {

HttpResponse health(const ApiBackends& /*backends*/, const HttpRequest& /*request*/) {
  return json_answer(200, {{"status", "ok"}});
}

HttpResponse ready(const ApiBackends& backends, const HttpRequest& /*request*/) {
  const auto fleet = backends.fleet.look();
  const std::string database = fleet ? "ok" : fleet.error().message;
  return json_answer(fleet ? 200 : 503, {{"status", fleet ? "ready" : "not_ready"},
                                         {"checks", {{"database", database}}}});
}

HttpResponse tell_version(const ApiBackends& /*backends*/, const HttpRequest& /*request*/) {
  return json_answer(
      200, {{"service", "fuse-orchestrator"}, {"version", version()}, {"build_id", build_id()}});
}

}  // namespace

std::vector<ApiRouteEntry> service_routes() {
  return {{"GET", "/health", "", Access::open, health},
          {"GET", "/ready", "", Access::open, ready},
          {"GET", "/v1/version", "", Access::open, tell_version}};
}

}  // namespace fuse
