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
Result<T> body_for_vm(const AgentCall& call, Result<T> (*parse)(const nlohmann::json&)) {
  const auto body = object_of(call.request);
  if (!body) return body.error();
  if (const auto vm = call.site.agent.vms.get_vm(call.vm()); !vm) return vm.error();
  return parse(*body);
}

HttpResponse upload(const AgentCall& call) {
  const auto file = body_for_vm(call, &parse_upload);
  if (!file) return text_error_response(file.error());
  const auto done = call.site.agent.guests.upload(call.vm(), *file);
  return done ? ok() : text_error_response(done.error());
}

HttpResponse exec(const AgentCall& call) {
  const auto command = body_for_vm(call, &parse_agent_exec_request);
  if (!command) return text_error_response(command.error());
  const auto result = call.site.agent.guests.exec(call.vm(), *command);
  if (!result) return text_error_response(result.error());
  return agent_answer(200, agent_exec_json(*result));
}

HttpResponse start_agent(const AgentCall& call) {
  const auto wanted = body_for_vm(call, &parse_start_agent_request);
  if (!wanted) return text_error_response(wanted.error());
  const auto endpoints = call.site.agent.guests.start_agent(call.vm(), *wanted);
  if (!endpoints) return text_error_response(endpoints.error());
  return agent_answer(200, to_json(*endpoints));
}

HttpResponse attach(const AgentCall& call) {
  if (const auto vm = call.site.agent.vms.get_vm(call.vm()); !vm) {
    return text_error_response(vm.error());
  }
  const AttachRequest wanted = parse_attach_query(call.request.query);
  // Only who says so gets no terminal: others have forgotten to ask for one.
  if (!wanted.tty && !call.request.query.get("tty")) {
    return text_response(400, "attach requires tty=1; use /exec for non-interactive commands");
  }
  auto session = call.site.agent.guests.attach(call.vm(), wanted);
  if (!session) return text_error_response(session.error());
  return attach_response(*std::move(session));
}

HttpResponse refuse_snapshot(const AgentCall& /*call*/) {
  return text_response(501, "snapshots are not supported for gpu passthrough vms");
}

HttpResponse refuse_restore(const AgentCall& call) {
  const auto body = object_of(call.request);
  if (!body) return text_error_response(body.error());
  if (!body->contains("snapshot_id")) return text_response(400, "missing field: 'snapshot_id'");
  return refuse_snapshot(call);
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
