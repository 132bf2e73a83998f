#include <nlohmann/json.hpp>

#include "base/text.h"
#include "orchestrator/api/json.h"
#include "orchestrator/http_routes.h"

namespace fuse {

namespace {

constexpr int bad_gateway = 502;

const std::string& host_of(const HttpRequest& request) {
  return request.params.at("hostId");
}

HttpResponse register_host(const ApiBackends& backends, const HttpRequest& request) {
  const auto body = parse_body(request);
  if (!body) return error_response(body.error());
  const auto wanted = parse_register_host_request(*body);
  if (!wanted) return error_response(wanted.error());
  const auto host = backends.hosts.register_host(*wanted);
  if (host) return json_answer(201, to_json(*host));
  Error error = host.error();
  const auto reason = error.details.find("reason");
  const bool of_agent = reason != error.details.end() && reason->second == "agent";
  if (!of_agent) return error_response(error);
  error.details.erase(reason);
  return error_response(error, bad_gateway);
}

HttpResponse list_hosts(const ApiBackends& backends, const HttpRequest& request) {
  const auto page = backends.hosts.list_hosts(number_in(request.query, "limit"),
                                              request.query.get("cursor").value_or(""));
  if (!page) return error_response(page.error());
  return json_answer(200, to_json(*page));
}

HttpResponse get_host(const ApiBackends& backends, const HttpRequest& request) {
  const auto host = backends.hosts.get_host(host_of(request));
  if (!host) return error_response(host.error());
  return json_answer(200, to_json(*host));
}

template <HostAction action>
HttpResponse change_host(const ApiBackends& backends, const HttpRequest& request) {
  const auto done = backends.hosts.change_host(host_of(request), action);
  return done ? no_content() : error_response(done.error());
}

HttpResponse remove_host(const ApiBackends& backends, const HttpRequest& request) {
  const auto done = backends.hosts.remove_host(host_of(request));
  return done ? no_content() : error_response(done.error());
}

// A spec by itself, or within a create request.
HttpResponse explain(const ApiBackends& backends, const HttpRequest& request) {
  const auto body = parse_body(request);
  if (!body) return error_response(body.error());
  const auto inner = body->find("spec");
  const auto spec = parse_resource_spec(inner != body->end() ? *inner : *body);
  if (!spec) return error_response(spec.error());
  const auto explanation = backends.hosts.explain(*spec);
  if (!explanation) return error_response(explanation.error());
  return json_answer(200, to_json(*explanation));
}

constexpr std::string_view changes = "host mutations";

}  // namespace

std::vector<ApiRouteEntry> host_routes() {
  return {{"POST", "/v1/hosts", "", Access::master, register_host, "host registration"},
          {"GET", "/v1/hosts", "", Access::user, list_hosts},
          {"GET", "/v1/hosts/{hostId}", "", Access::user, get_host},
          {"POST", "/v1/hosts/{hostId}", "cordon", Access::master, change_host<HostAction::cordon>,
           changes},
          {"POST", "/v1/hosts/{hostId}", "uncordon", Access::master,
           change_host<HostAction::uncordon>, changes},
          {"POST", "/v1/hosts/{hostId}", "drain", Access::master, change_host<HostAction::drain>,
           changes},
          {"DELETE", "/v1/hosts/{hostId}", "", Access::master, remove_host, "host removal"},
          {"POST", "/v1/placements/explain", "", Access::user, explain}};
}

}  // namespace fuse
