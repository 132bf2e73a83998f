#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/text.h"
#include "orchestrator/api/json.h"
#include "orchestrator/environment_service.h"
#include "orchestrator/http_routes.h"

namespace fuse {

namespace {

const std::string& vm_of(const HttpRequest& request) {
  return request.params.at("vmId");
}

bool asks_for_ended(const HttpRequest& request) {
  return request.query.get("include").value_or("") == "ended";
}

HttpResponse create(const ApiBackends& backends, const HttpRequest& request) {
  const auto body = parse_body(request);
  if (!body) return error_response(body.error());
  const auto wanted = parse_create_request(*body);
  if (!wanted) return error_response(wanted.error());
  const CreateOptions options{.respond_async =
                                  request.headers.has_token("Prefer", "respond-async")};
  const auto environment = backends.environments.create(*wanted, options);
  if (!environment) return error_response(environment.error());
  HttpResponse response = json_answer(201, to_json(*environment));
  if (options.respond_async) response.headers.set("Preference-Applied", "respond-async");
  return response;
}

HttpResponse list(const ApiBackends& backends, const HttpRequest& request) {
  const auto page =
      backends.environments.list({.task_id = request.query.get("task_id").value_or(""),
                                  .state = request.query.get("state").value_or(""),
                                  .host_id = request.query.get("host_id").value_or(""),
                                  .include_ended = asks_for_ended(request),
                                  .limit = number_in(request.query, "limit"),
                                  .cursor = request.query.get("cursor").value_or("")});
  if (!page) return error_response(page.error());
  return json_answer(200, to_json(*page));
}

HttpResponse get(const ApiBackends& backends, const HttpRequest& request) {
  const auto environment = backends.environments.get(vm_of(request), asks_for_ended(request));
  if (!environment) return error_response(environment.error());
  return json_answer(200, to_json(*environment));
}

HttpResponse destroy(const ApiBackends& backends, const HttpRequest& request) {
  const auto done = backends.environments.destroy(vm_of(request));
  return done ? no_content() : error_response(done.error());
}

HttpResponse exec(const ApiBackends& backends, const HttpRequest& request) {
  const auto body = parse_body(request);
  if (!body) return error_response(body.error());
  const auto wanted = parse_exec_request(*body);
  if (!wanted) return error_response(wanted.error());
  const auto result = backends.environments.exec(vm_of(request), *wanted);
  if (!result) return error_response(result.error());
  return json_answer(200, to_json(*result));
}

HttpResponse stop(const ApiBackends& backends, const HttpRequest& request) {
  const auto done = backends.environments.stop_job(vm_of(request));
  return done ? no_content() : error_response(done.error());
}

HttpResponse drain(const ApiBackends& backends, const HttpRequest& request) {
  const auto environment = backends.environments.drain(vm_of(request));
  if (!environment) return error_response(environment.error());
  return json_answer(200, to_json(*environment));
}

HttpResponse rotate_token(const ApiBackends& backends, const HttpRequest& request) {
  const auto done = backends.environments.rotate_token(vm_of(request));
  return done ? no_content() : error_response(done.error());
}

// Why the environment can be neither copied nor kept: what `what` would be.
HttpResponse refuse_copy(const ApiBackends& backends, const HttpRequest& request,
                         std::string_view what, std::string_view sentence) {
  const auto environment = backends.environments.get(vm_of(request), false);
  if (!environment) return error_response(environment.error());
  if (environment->state != EnvironmentState::running) {
    return error_response(not_running(*environment));
  }
  if (environment->spec.gpus > 0) {
    return error_response(
        {ErrorCode::conflict,
         cat("operation not supported for gpu environments: vm ", environment->id,
             " has a gpu passthrough device: ", sentence, " not supported for gpu environments")});
  }
  return error_response({ErrorCode::unimplemented, cat(what, " not supported by provider: host ",
                                                       environment->host_id, " runs qemu")});
}

HttpResponse fork(const ApiBackends& backends, const HttpRequest& request) {
  return refuse_copy(backends, request, "fork", "fork is");
}

HttpResponse snapshot(const ApiBackends& backends, const HttpRequest& request) {
  return refuse_copy(backends, request, "snapshot", "snapshots are");
}

}  // namespace

std::vector<ApiRouteEntry> environment_routes() {
  return {{"POST", "/v1/environments", "", Access::user, create},
          {"GET", "/v1/environments", "", Access::user, list},
          {"GET", "/v1/environments/{vmId}", "", Access::user, get},
          {"DELETE", "/v1/environments/{vmId}", "", Access::user, destroy},
          {"POST", "/v1/environments/{vmId}", "exec", Access::master, exec, "exec"},
          {"POST", "/v1/environments/{vmId}", "stop", Access::user, stop},
          {"POST", "/v1/environments/{vmId}", "drain", Access::user, drain},
          {"POST", "/v1/environments/{vmId}", "rotate-token", Access::user, rotate_token},
          {"POST", "/v1/environments/{vmId}", "fork", Access::user, fork},
          {"POST", "/v1/environments/{vmId}/snapshots", "", Access::user, snapshot}};
}

}  // namespace fuse
