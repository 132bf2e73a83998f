#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "base/version.h"
#include "hostmode/http_routes.h"
#include "orchestrator/api/agent_json.h"

namespace fuse {

namespace {

HttpResponse health(const AgentCall& /*call*/) {
  return agent_answer(200, to_json(own_health(std::string(version()))));
}

HttpResponse capacity(const AgentCall& call) {
  const auto capacity = call.site.agent.vms.capacity();
  if (!capacity) return text_error_response(capacity.error());
  return agent_answer(200, agent_capacity_json(*capacity));
}

Gauge vm_gauge(const std::vector<VmInfo>& vms) {
  Gauge gauge{.name = "vms", .help = "Virtual machines on this host."};
  std::uint64_t alive = 0;
  for (const VmInfo& vm : vms) alive += vm.alive ? 1 : 0;
  gauge.values[metric_label("state", "running")] = alive;
  gauge.values[metric_label("state", "ended")] = vms.size() - alive;
  return gauge;
}

Gauge device_gauge(const HostCapacity& capacity, const std::set<std::string>& in_use) {
  Gauge gauge{.name = "devices", .help = "GPUs and MIG instances that can be handed to guests."};
  const auto count = [&](const std::string& uuid, const std::string& kind,
                         const std::string& profile) {
    const std::string labels =
        cat(metric_label("kind", kind), ",", metric_label("profile", profile));
    for (const bool used : {false, true}) {
      gauge.values[cat(labels, ",", metric_label("state", used ? "used" : "free"))] +=
          in_use.contains(uuid) == used ? 1 : 0;
    }
  };
  for (const GpuDevice& device : capacity.gpu_devices) count(device.uuid, device.model, "");
  for (const MigInstance& instance : capacity.mig_instances) {
    count(instance.uuid, instance.kind, instance.profile);
  }
  return gauge;
}

HttpResponse metrics(const AgentCall& call) {
  const auto vms = call.site.agent.vms.list_vms("");
  if (!vms) return text_error_response(vms.error());
  const auto capacity = call.site.agent.vms.capacity();
  if (!capacity) return text_error_response(capacity.error());
  const std::set<std::string> in_use =
      call.site.devices_in_use ? call.site.devices_in_use() : std::set<std::string>();
  HttpResponse response =
      text_response(200, call.site.metrics.text({vm_gauge(*vms), device_gauge(*capacity, in_use)}));
  response.headers.set("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  return response;
}

HttpResponse create(const AgentCall& call) {
  const auto body = object_of(call.request);
  if (!body) return text_error_response(body.error());
  auto wanted = parse_create_vm_request(*body);
  if (!wanted) return text_error_response(wanted.error());
  wanted->idempotency_key = call.request.headers.get(idempotency_header).value_or("");
  wanted->cluster = call.request.headers.get(cluster_header).value_or("");
  const SteadyTime begin = call.site.clock.steady();
  const auto vm = call.site.agent.vms.create_vm(*wanted);
  call.site.metrics.note_create(vm.has_value(), call.site.clock.steady() - begin);
  if (vm) return agent_answer(200, to_json(*vm));
  // The image is all of a create that can be unknown, and 404 is for VMs.
  Error error = vm.error();
  if (error.code == ErrorCode::not_found) error.code = ErrorCode::invalid_argument;
  return text_error_response(error);
}

// As it stands in the query, since ids hold nothing that would be encoded.
std::string_view raw_prefix(const HttpRequest& request) {
  constexpr std::string_view name = "prefix=";
  std::string_view query = request.target;
  query.remove_prefix(std::min(query.size(), request.raw_path.size() + 1));
  while (!query.empty()) {
    const std::string_view item = query.substr(0, query.find('&'));
    if (item.starts_with(name)) return item.substr(name.size());
    query.remove_prefix(std::min(query.size(), item.size() + 1));
  }
  return {};
}

HttpResponse list(const AgentCall& call) {
  const auto vms = call.site.agent.vms.list_vms(std::string(raw_prefix(call.request)));
  if (!vms) return text_error_response(vms.error());
  return agent_answer(200, to_json(*vms));
}

HttpResponse get(const AgentCall& call) {
  const auto vm = call.site.agent.vms.get_vm(call.vm());
  if (!vm) return text_error_response(vm.error());
  return agent_answer(200, to_json(*vm));
}

HttpResponse destroy(const AgentCall& call) {
  const auto done = call.site.agent.vms.destroy_vm(call.vm());
  return done ? nothing_more() : text_error_response(done.error());
}

}  // namespace

std::vector<AgentRouteEntry> host_agent_routes() {
  return {{"GET", "/", "", health},
          {"GET", "/healthz", "", health},
          {"GET", "/v1/capacity", "", capacity},
          {"GET", "/metrics", "", metrics}};
}

std::vector<AgentRouteEntry> vm_routes() {
  return {{"POST", "/v1/vm", "", create},
          {"GET", "/v1/vm", "", list},
          {"GET", "/v1/vm/{id}", "", get},
          {"DELETE", "/v1/vm/{id}", "", destroy}};
}

}  // namespace fuse
