#include <nlohmann/json.hpp>

#include "base/text.h"
#include "orchestrator/api/json.h"
#include "orchestrator/http_routes.h"
#include "orchestrator/page_cursor.h"

namespace fuse {

namespace {

HttpResponse list_hosts(const ApiBackends& backends, const HttpRequest& request) {
  const auto after = decode_cursor(request.query.get("cursor").value_or(""));
  if (!after) return error_response(after.error());
  const auto fleet = backends.fleet.look();
  if (!fleet) return error_response(fleet.error());
  const std::int64_t size = page_size(number_in(request.query, "limit"));
  nlohmann::ordered_json hosts = nlohmann::ordered_json::array();
  std::string next;
  std::string last;
  for (const FleetHost& host : *fleet) {
    if (host.info.id <= after->id) continue;
    if (static_cast<std::int64_t>(hosts.size()) == size) {
      next = encode_cursor({.id = last});
      break;
    }
    hosts.push_back(to_json(host.info));
    last = host.info.id;
  }
  nlohmann::ordered_json page = {{"hosts", std::move(hosts)}};
  if (!next.empty()) page["next_cursor"] = next;
  return json_answer(200, page);
}

HttpResponse get_host(const ApiBackends& backends, const HttpRequest& request) {
  const auto fleet = backends.fleet.look();
  if (!fleet) return error_response(fleet.error());
  const std::string& id = request.params.at("hostId");
  for (const FleetHost& host : *fleet) {
    if (host.info.id == id) return json_answer(200, to_json(host.info));
  }
  return error_response({ErrorCode::not_found, cat("host not found: ", id)});
}

}  // namespace

std::vector<ApiRouteEntry> host_routes() {
  return {{"GET", "/v1/hosts", "", Access::user, list_hosts},
          {"GET", "/v1/hosts/{hostId}", "", Access::user, get_host}};
}

}  // namespace fuse
