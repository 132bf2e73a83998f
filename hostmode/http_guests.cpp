#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "hostmode/http_routes.h"
#include "net/attach_frames.h"
#include "net/attach_session.h"
#include "orchestrator/api/agent_json.h"

namespace fuse {

namespace {

HttpResponse ok() {
  return agent_answer(200, {{"ok", true}});
}

// The body of a request about a VM that is there: that is asked before what is
// wrong with the body.
template <class T>
Result<T> body_for_vm(const AgentSite& site, const HttpRequest& request,
                      Result<T> (*parse)(const nlohmann::json&)) {
  const auto body = object_of(request);
  if (!body) return body.error();
  if (const auto vm = site.agent.vms.get_vm(vm_in(request)); !vm) return vm.error();
  return parse(*body);
}

HttpResponse upload(const AgentSite& site, const HttpRequest& request) {
  const auto file = body_for_vm(site, request, &parse_upload);
  if (!file) return text_error_response(file.error());
  const auto done = site.agent.guests.upload(vm_in(request), *file);
  return done ? ok() : text_error_response(done.error());
}

HttpResponse exec(const AgentSite& site, const HttpRequest& request) {
  const auto command = body_for_vm(site, request, &parse_agent_exec_request);
  if (!command) return text_error_response(command.error());
  const auto result = site.agent.guests.exec(vm_in(request), *command);
  if (!result) return text_error_response(result.error());
  return agent_answer(200, agent_exec_json(*result));
}

HttpResponse start_agent(const AgentSite& site, const HttpRequest& request) {
  const auto wanted = body_for_vm(site, request, &parse_start_agent_request);
  if (!wanted) return text_error_response(wanted.error());
  const auto endpoints = site.agent.guests.start_agent(vm_in(request), *wanted);
  if (!endpoints) return text_error_response(endpoints.error());
  return agent_answer(200, to_json(*endpoints));
}

HttpResponse attach(const AgentSite& site, const HttpRequest& request) {
  if (const auto vm = site.agent.vms.get_vm(vm_in(request)); !vm) {
    return text_error_response(vm.error());
  }
  const AttachRequest wanted = parse_attach_query(request.query);
  // Only who says so gets no terminal: others have forgotten to ask for one.
  if (!wanted.tty && !request.query.get("tty")) {
    return text_response(400, "attach requires tty=1; use /exec for non-interactive commands");
  }
  auto session = site.agent.guests.attach(vm_in(request), wanted);
  if (!session) return text_error_response(session.error());
  HttpResponse response;
  response.status = 101;
  response.upgrade = {.protocol = std::string(attach_protocol),
                      .run = [session = std::shared_ptr<AttachSession>(*std::move(session))](
                                 ByteStream& client) { serve_attach(client, *session); }};
  return response;
}

HttpResponse refuse_snapshot(const AgentSite& /*site*/, const HttpRequest& /*request*/) {
  return text_response(501, "snapshots are not supported for gpu passthrough vms");
}

HttpResponse refuse_restore(const AgentSite& site, const HttpRequest& request) {
  const auto body = object_of(request);
  if (!body) return text_error_response(body.error());
  if (!body->contains("snapshot_id")) return text_response(400, "missing field: 'snapshot_id'");
  return refuse_snapshot(site, request);
}

}  // namespace

std::vector<AgentRouteEntry> guest_routes() {
  return {{"POST", "/v1/vm/{id}/upload", "", upload},
          {"POST", "/v1/vm/{id}/exec", "", exec},
          {"POST", "/v1/vm/{id}/start-agent", "", start_agent},
          {"GET", "/v1/vm/{id}/attach", "", attach},
          {"POST", "/v1/vm/{id}/snapshot", "", refuse_snapshot},
          {"GET", "/v1/vm/{id}/snapshots", "", refuse_snapshot},
          {"POST", "/v1/vm/{id}/restore", "", refuse_restore}};
}

}  // namespace fuse
