#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/version.h"
#include "orchestrator/api_document.h"
#include "orchestrator/fleet_metrics.h"
#include "orchestrator/http_routes.h"

namespace fuse {

namespace {

HttpResponse health(const ApiBackends& /*backends*/, const HttpRequest& /*request*/) {
  return json_answer(200, {{"status", "ok"}});
}

HttpResponse ready(const ApiBackends& backends, const HttpRequest& /*request*/) {
  const auto hosts = backends.hosts.list_hosts(1, "");
  const std::string database = hosts ? "ok" : hosts.error().message;
  return json_answer(hosts ? 200 : 503, {{"status", hosts ? "ready" : "not_ready"},
                                         {"checks", {{"database", database}}}});
}

// Every host of the fleet, page by page.
Result<std::vector<HostInfo>> all_hosts(HostApi& api) {
  std::vector<HostInfo> out;
  std::string cursor;
  do {
    auto page = api.list_hosts(0, cursor);
    if (!page) return page.error();
    std::ranges::move(page->hosts, std::back_inserter(out));
    cursor = page->next_cursor;
  } while (!cursor.empty());
  return out;
}

HttpResponse metrics(const ApiBackends& backends, const HttpRequest& /*request*/) {
  const auto hosts = all_hosts(backends.hosts);
  if (!hosts) return error_response(hosts.error());
  measure_fleet(*hosts, backends.metrics);
  HttpResponse response = text_response(200, backends.metrics.text());
  response.headers.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  return response;
}

HttpResponse tell_version(const ApiBackends& /*backends*/, const HttpRequest& /*request*/) {
  return json_answer(
      200, {{"service", "fuse-orchestrator"}, {"version", version()}, {"build_id", build_id()}});
}

HttpResponse show_document(const ApiBackends& /*backends*/, const HttpRequest& /*request*/) {
  return json_response(200, cat(api_document, '\n'));
}

}  // namespace

std::vector<ApiRouteEntry> service_routes() {
  return {{"GET", "/health", "", Access::open, health},
          {"GET", "/ready", "", Access::open, ready},
          {"GET", "/metrics", "", Access::open, metrics},
          {"GET", "/v1/version", "", Access::open, tell_version},
          {"GET", "/openapi.json", "", Access::open, show_document}};
}

}  // namespace fuse
