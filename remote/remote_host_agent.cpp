#include "remote/remote_host_agent.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "base/version.h"
#include "net/attach_frames.h"
#include "net/attach_session.h"
#include "net/url.h"
#include "orchestrator/api/json.h"
#include "remote/agent_answer_detail.h"

namespace fuse {

namespace {

using std::chrono::milliseconds;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr milliseconds look_timeout = seconds(30);
// Ending a VM fetches the rest of its log first, and gives the guest its time.
constexpr milliseconds destroy_timeout = seconds(180);
constexpr milliseconds upload_timeout = minutes(3);
constexpr milliseconds attach_timeout = seconds(15);
// Services may have images to pull.
constexpr milliseconds start_timeout = minutes(10);
constexpr milliseconds longest_exec = seconds(600);
constexpr milliseconds exec_margin = seconds(30);
constexpr std::size_t most_reply = 128U << 20U;

// Gives back what it took, whatever happens.
template <class Semaphore>
class Turn {
 public:
  explicit Turn(Semaphore& semaphore) : semaphore_(semaphore) { semaphore_.acquire(); }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;
  ~Turn() { semaphore_.release(); }

 private:
  Semaphore& semaphore_;
};

// What an agent that knows no uids says of a VM, with the one in its name.
VmInfo with_uid(VmInfo vm) {
  if (vm.uid.empty()) vm.uid = uid_in_name(vm.vm_id).value_or("");
  return vm;
}

// What firecracker agents call start-agent takes fewer fields.
nlohmann::ordered_json surfd_json(const StartAgentRequest& request) {
  nlohmann::ordered_json body = to_json(request);
  body.erase("expose");
  return body;
}

}  // namespace

Result<HostCapacity> RemoteVms::capacity() {
  const auto reply =
      wire_.send({.method = "GET", .target = "/v1/capacity", .timeout = look_timeout});
  if (!reply) return reply.error();
  return parsed_answer(wire_, *reply, &parse_host_capacity);
}

Result<VmInfo> RemoteVms::create_vm(const CreateVmRequest& request) {
  const auto agent = wire_.health();
  if (!agent) return agent.error();
  const bool knows_uids = agent->has(agent_feature::uid);
  CreateVmRequest wanted = request;
  if (!knows_uids) {
    wanted.name = name_with_uid(request.name, request.uid);
    wanted.uid.clear();
  }
  HttpCall call = agent_call("POST", "/v1/vm", to_json(wanted));
  call.timeout = options_.create_timeout;
  if (!request.idempotency_key.empty()) {
    call.headers.set(idempotency_header, request.idempotency_key);
  }
  if (!request.cluster.empty()) call.headers.set(cluster_header, request.cluster);
  const auto reply = wire_.send(call);
  if (!reply) {
    // The uid is this request's alone: an earlier attempt of it was answered to nobody.
    const bool made_before = !knows_uids && !request.uid.empty() &&
                             reply.error().code == ErrorCode::conflict &&
                             reply.error().message.ends_with("already exists");
    return made_before ? get_vm(request.uid) : reply.error();
  }
  auto vm = parsed_answer(wire_, *reply, &parse_vm_info);
  if (!vm || knows_uids) return vm;
  vm->uid = request.uid;
  vm->cluster = request.cluster;
  wire_.learn(*vm);
  return vm;
}

Result<VmInfo> RemoteVms::get_vm(const std::string& vm_id) {
  const auto path = wire_.vm_path(vm_id);
  if (!path) return path.error();
  const auto reply = wire_.send({.method = "GET", .target = *path, .timeout = look_timeout});
  if (!reply) return reply.error();
  auto vm = parsed_answer(wire_, *reply, &parse_vm_info);
  if (!vm) return vm;
  return with_uid(*std::move(vm));
}

Result<std::vector<VmInfo>> RemoteVms::list_vms(const std::string& prefix) {
  // The prefix is compared as it stands in the query, so nothing in it is encoded
  // that need not be; what does not survive that is sorted out here.
  const auto reply =
      wire_.send({.method = "GET",
                  .target = cat("/v1/vm", prefix.empty() ? "" : "?prefix=", percent_encode(prefix)),
                  .timeout = look_timeout});
  if (!reply) return reply.error();
  auto vms = parsed_answer(wire_, *reply, &parse_vm_list);
  if (!vms) return vms;
  for (VmInfo& vm : *vms) vm = with_uid(std::move(vm));
  return vms;
}

Result<void> RemoteVms::destroy_vm(const std::string& vm_id) {
  const auto path = wire_.vm_path(vm_id);
  if (!path) return path.error();
  jobs_.keep_result(vm_id);
  const auto reply = wire_.send({.method = "DELETE", .target = *path, .timeout = destroy_timeout});
  if (!reply) return reply.error();
  wire_.forget(vm_id);
  return {};
}

Result<void> RemoteGuests::upload(const std::string& vm_id, const UploadFile& file) {
  const auto path = wire_.vm_path(vm_id);
  if (!path) return path.error();
  {
    const Turn turn(uploads_);
    HttpCall call = agent_call("POST", cat(*path, "/upload"), to_json(file));
    call.timeout = upload_timeout;
    if (const auto reply = wire_.send(call); !reply) return reply.error();
  }
  const auto agent = wire_.health();
  if (!agent) return agent.error();
  if (file.mode == 0 || agent->has(agent_feature::uid)) return {};
  const auto set = exec(vm_id, {.cmd = {"chmod", octal_mode(file.mode), file.path}});
  if (!set) return set.error();
  if (set->exit_code == 0) return {};
  return Error{ErrorCode::internal, cat("chmod of ", file.path, " in the guest exited with ",
                                        set->exit_code, ": ", valid_utf8(trim(set->err)))};
}

Result<ExecResult> RemoteGuests::exec(const std::string& vm_id, const ExecRequest& request) {
  if (!request.cmd.empty() && !request.shell.empty()) {
    return Error{ErrorCode::invalid_argument, "cmd and shell are mutually exclusive"};
  }
  const auto path = wire_.vm_path(vm_id);
  if (!path) return path.error();
  ExecRequest wanted{.cmd = request.cmd,
                     .timeout_ms = std::max<std::int64_t>(0, request.timeout_ms)};
  if (!request.shell.empty()) wanted.cmd = {"sh", "-lc", request.shell};
  HttpCall call = agent_call("POST", cat(*path, "/exec"), to_json(wanted));
  const milliseconds limit = wanted.timeout_ms == 0
                                 ? longest_exec
                                 : milliseconds(std::min(wanted.timeout_ms, longest_exec.count()));
  call.timeout = limit + exec_margin;
  const auto reply = wire_.send(call);
  if (!reply) return reply.error();
  return parsed_answer(wire_, *reply, &parse_agent_exec_result);
}

Result<std::unique_ptr<AttachSession>> RemoteGuests::attach(const std::string& vm_id,
                                                            const AttachRequest& request) {
  const auto path = wire_.vm_path(vm_id);
  if (!path) return path.error();
  const HttpCall call{.method = "GET",
                      .target = cat(*path, "/attach?", attach_query(request).encode()),
                      .timeout = attach_timeout};
  auto reply = wire_.http().upgrade(call, attach_protocol);
  if (!reply) return reply.error();
  if (reply->stream == nullptr) return wire_.refusal(call, reply->reply.status, reply->reply.body);
  return make_attach_session(std::move(reply->stream));
}

Result<std::vector<Endpoint>> RemoteGuests::start_agent(const std::string& vm_id,
                                                        const StartAgentRequest& request) {
  const auto path = wire_.vm_path(vm_id);
  if (!path) return path.error();
  HttpCall call = agent_call("POST", cat(*path, "/start-agent"), to_json(request));
  call.timeout = start_timeout;
  auto reply = wire_.send(call);
  if (!reply && reply.error().code == ErrorCode::route_not_found) {
    call = agent_call("POST", cat(*path, "/start-surfd"), surfd_json(request));
    call.timeout = start_timeout;
    reply = wire_.send(call);
  }
  if (!reply) return reply.error();
  return parsed_answer(wire_, *reply, &parse_endpoints);
}

RemoteHostAgent::RemoteHostAgent(std::unique_ptr<HttpClient> http, Clock& clock,
                                 const RemoteHostOptions& options)
    : wire_(std::move(http)),
      guests_(wire_),
      jobs_(wire_, guests_, clock, options),
      vms_(wire_, jobs_, options) {}

Result<std::unique_ptr<RemoteHostAgent>> connect_host_agent(const HostAddress& address,
                                                            Clock& clock,
                                                            const RemoteHostOptions& options) {
  auto http = make_http_client({.base_url = address.url,
                                .token = address.token,
                                .user_agent = cat("fuse/", version()),
                                .ca_file = address.ca_file,
                                .verify_tls = address.verify_tls,
                                .most_reply = most_reply});
  if (!http) return http.error();
  return std::make_unique<RemoteHostAgent>(*std::move(http), clock, options);
}

}  // namespace fuse
