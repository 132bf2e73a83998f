#include "remote/agent_wire.h"

#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/text.h"
#include "net/url.h"
#include "orchestrator/api/json.h"
#include "remote/agent_answer_detail.h"

namespace fuse {

namespace {

using std::chrono::seconds;

constexpr seconds health_timeout{15};
constexpr seconds list_timeout{30};

bool is_success(int status) {
  return status >= 200 && status < 300;
}

ErrorCode code_of(int status) {
  // What a server or a proxy says that has no time.
  if (status == 408 || status == 429 || status == 504) return ErrorCode::unavailable;
  return error_code_of(status);
}

}  // namespace

HttpCall agent_call(std::string method, std::string target, const nlohmann::ordered_json& body) {
  HttpCall call{.method = std::move(method), .target = std::move(target)};
  call.headers.set("Content-Type", "application/json");
  call.body = body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return call;
}

Error not_understood(const AgentWire& wire, const Error& error) {
  return {ErrorCode::internal, cat("host agent at ", wire.place(),
                                   " gave an answer that is not understood: ", error.message)};
}

std::string name_with_uid(std::string_view name, std::string_view uid) {
  return uid.empty() ? std::string(name) : cat(name, "-", lowercase(uid));
}

std::optional<std::string> uid_in_name(std::string_view vm_id) {
  constexpr std::size_t length = 26;
  if (vm_id.size() <= length || vm_id[vm_id.size() - length - 1] != '-') return std::nullopt;
  std::string uid(vm_id.substr(vm_id.size() - length));
  for (char& c : uid) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  if (!is_ulid(uid)) return std::nullopt;
  return uid;
}

Error AgentWire::refusal(const HttpCall& call, int status, std::string_view body) const {
  const std::string who = cat("host agent at ", place());
  if (status == 401 || status == 403) {
    return {ErrorCode::unauthorized,
            cat(who, " rejected the token"),
            {{"hint", "register the host with the token that its agent was started with"}}};
  }
  if (status >= 300 && status < 400) {
    return {ErrorCode::internal, cat(who, " answers HTTP ", status,
                                     ": redirects are not followed, register its final address")};
  }
  const std::string said = valid_utf8(trim(body));
  if (status == 404 && said == "not found") {
    return {ErrorCode::route_not_found, cat(who, " has no route ", call.method, " ",
                                            call.target.substr(0, call.target.find('?')))};
  }
  return {code_of(status), said.empty() ? cat(who, " answers HTTP ", status) : said};
}

void AgentWire::note_outcome(const Error& error) {
  if (error.code != ErrorCode::unreachable) return;
  // Another agent may answer when one does again.
  const std::scoped_lock lock(mutex_);
  health_.reset();
}

Result<HttpReply> AgentWire::send(const HttpCall& call) {
  auto reply = http_->send(call);
  if (!reply) {
    note_outcome(reply.error());
    return reply;
  }
  if (is_success(reply->status)) return reply;
  return refusal(call, reply->status, reply->body);
}

Result<AgentHealth> AgentWire::ask_health() {
  const auto reply = send({.method = "GET", .target = "/healthz", .timeout = health_timeout});
  if (!reply) return reply.error();
  auto health = parsed_answer(*this, *reply, &parse_agent_health);
  if (!health) return health;
  const std::scoped_lock lock(mutex_);
  health_ = *health;
  return health;
}

Result<AgentHealth> AgentWire::health() {
  {
    const std::scoped_lock lock(mutex_);
    if (health_) return *health_;
  }
  return ask_health();
}

std::optional<std::string> AgentWire::known_name(const std::string& id) const {
  const std::scoped_lock lock(mutex_);
  const auto found = names_.find(id);
  if (found == names_.end()) return std::nullopt;
  return found->second;
}

void AgentWire::learn(const VmInfo& vm) {
  if (vm.uid.empty()) return;
  const std::scoped_lock lock(mutex_);
  names_[vm.uid] = vm.vm_id;
}

void AgentWire::forget(const std::string& id) {
  const std::scoped_lock lock(mutex_);
  names_.erase(id);
}

Result<std::string> AgentWire::vm_path(const std::string& id) {
  const auto path = [](std::string_view name) { return cat("/v1/vm/", percent_encode(name)); };
  const auto agent = health();
  if (!agent) return agent.error();
  if (agent->has(agent_feature::uid) || !is_ulid(id)) return path(id);
  if (const auto name = known_name(id)) return path(*name);
  const auto reply = send({.method = "GET", .target = "/v1/vm", .timeout = list_timeout});
  if (!reply) return reply.error();
  const auto vms = parsed_answer(*this, *reply, &parse_vm_list);
  if (!vms) return vms.error();
  for (VmInfo vm : *vms) {
    if (uid_in_name(vm.vm_id) != id) continue;
    vm.uid = id;
    learn(vm);
    return path(vm.vm_id);
  }
  return Error{ErrorCode::not_found, "vm not found"};
}

}  // namespace fuse
