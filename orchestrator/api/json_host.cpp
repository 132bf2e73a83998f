#include <nlohmann/json.hpp>

#include "orchestrator/api/json.h"
#include "orchestrator/api/json_detail.h"

namespace fuse {

using json_detail::choice_in;
using json_detail::int32_in;
using json_detail::object_in;
using json_detail::objects_in;
using json_detail::put;
using nlohmann::json;
using Json = nlohmann::ordered_json;

namespace {

Json device_json(const GpuDevice& device) {
  Json out = Json::object();
  out["index"] = device.index;
  out["uuid"] = device.uuid;
  out["model"] = device.model;
  out["pci_bus_id"] = device.pci_bus_id;
  out["memory_mb"] = device.memory_mb;
  put(out, "driver_version", device.driver_version);
  put(out, "compute_cap", device.compute_cap);
  put(out, "mig_capable", device.mig_capable);
  put(out, "mig_mode", device.mig_mode);
  put(out, "iommu_group", device.iommu_group);
  put(out, "numa_node", device.numa_node);
  return out;
}

GpuDevice read_device(JsonReader& reader) {
  GpuDevice device;
  device.index = int32_in(reader, "index");
  device.uuid = reader.text("uuid").value_or("");
  device.model = reader.text("model").value_or("");
  device.pci_bus_id = reader.text("pci_bus_id").value_or("");
  device.memory_mb = reader.integer("memory_mb").value_or(0);
  device.driver_version = reader.text("driver_version").value_or("");
  device.compute_cap = reader.text("compute_cap").value_or("");
  device.mig_capable = reader.flag("mig_capable").value_or(false);
  device.mig_mode = reader.text("mig_mode").value_or("");
  device.iommu_group = reader.text("iommu_group").value_or("");
  if (reader.has("numa_node")) device.numa_node = int32_in(reader, "numa_node");
  return device;
}

MigInstance read_instance(JsonReader& reader) {
  return {.uuid = reader.text("uuid").value_or(""),
          .profile = reader.text("profile").value_or(""),
          .kind = reader.text("kind").value_or(""),
          .parent_gpu_uuid = reader.text("parent_gpu_uuid").value_or("")};
}

std::map<std::string, std::int32_t> read_counts(JsonReader& reader, std::string_view key) {
  std::map<std::string, std::int32_t> out;
  const json* const counts = reader.object(key);
  if (counts == nullptr) return out;
  JsonReader inner(*counts, reader.path_of(key));
  for (const auto& entry : counts->items()) out[entry.key()] = int32_in(inner, entry.key());
  if (auto done = inner.finish(); !done) reader.complain_with(done.error());
  return out;
}

HostCapacity read_capacity(JsonReader& reader) {
  HostCapacity capacity;
  capacity.cpus = int32_in(reader, "cpus");
  capacity.ram_mb = int32_in(reader, "ram_mb");
  capacity.storage_gb = int32_in(reader, "storage_gb");
  capacity.vm_count = int32_in(reader, "vm_count");
  capacity.gpus = int32_in(reader, "gpus");
  capacity.gpu_kind = reader.text("gpu_kind").value_or("");
  capacity.arch = reader.text("arch").value_or("");
  capacity.mig_profiles = read_counts(reader, "mig_profiles");
  capacity.gpu_devices = objects_in<GpuDevice>(reader, "gpu_devices", read_device);
  capacity.mig_instances = objects_in<MigInstance>(reader, "mig_instances", read_instance);
  using Texts = std::vector<std::string>;
  capacity.mig_instance_uuids = reader.texts("mig_instance_uuids").value_or(Texts());
  capacity.gpu_device_uuids = reader.texts("gpu_device_uuids").value_or(Texts());
  capacity.gpu_summary = reader.text("gpu_summary").value_or("");
  return capacity;
}

}  // namespace

Json to_json(const HostCapacity& capacity) {
  Json out = {{"cpus", capacity.cpus},
              {"ram_mb", capacity.ram_mb},
              {"storage_gb", capacity.storage_gb},
              {"vm_count", capacity.vm_count}};
  put(out, "gpus", capacity.gpus);
  put(out, "gpu_kind", capacity.gpu_kind);
  put(out, "mig_profiles", capacity.mig_profiles);
  if (!capacity.gpu_devices.empty()) {
    Json devices = Json::array();
    for (const GpuDevice& device : capacity.gpu_devices) devices.push_back(device_json(device));
    out["gpu_devices"] = std::move(devices);
  }
  put(out, "arch", capacity.arch);
  if (!capacity.mig_instances.empty()) {
    Json instances = Json::array();
    for (const MigInstance& instance : capacity.mig_instances) {
      Json entry = {{"uuid", instance.uuid}, {"profile", instance.profile}};
      put(entry, "kind", instance.kind);
      put(entry, "parent_gpu_uuid", instance.parent_gpu_uuid);
      instances.push_back(std::move(entry));
    }
    out["mig_instances"] = std::move(instances);
  }
  put(out, "mig_instance_uuids", capacity.mig_instance_uuids);
  put(out, "gpu_device_uuids", capacity.gpu_device_uuids);
  put(out, "gpu_summary", capacity.gpu_summary);
  return out;
}

Json to_json(const HostInfo& host) {
  Json out = Json::object();
  out["id"] = host.id;
  out["url"] = host.url;
  put(out, "region", host.region);
  put(out, "arch", host.arch);
  out["backend"] = to_string(host.backend);
  put(out, "labels", host.labels);
  out["state"] = to_string(host.state);
  if (!host.reachable) out["reachable"] = false;
  out["capacity"] = to_json(host.capacity);
  out["allocated"] = to_json(host.allocated);
  out["last_seen"] = host.last_seen;
  out["created_at"] = host.created_at;
  out["updated_at"] = host.updated_at;
  put(out, "warnings", host.warnings);
  return out;
}

Json to_json(const HostPage& page) {
  Json hosts = Json::array();
  for (const HostInfo& host : page.hosts) hosts.push_back(to_json(host));
  Json out = {{"hosts", std::move(hosts)}};
  put(out, "next_cursor", page.next_cursor);
  return out;
}

Json to_json(const RegisterHostRequest& request) {
  Json out = {{"id", request.id}, {"url", request.url}};
  put(out, "token", request.token);
  put(out, "region", request.region);
  out["backend"] = to_string(request.backend);
  put(out, "labels", request.labels);
  out["capacity"] = to_json(request.capacity);
  return out;
}

Json to_json(const Explanation& explanation) {
  Json out = Json::object();
  out["fits"] = !explanation.host_id.empty();
  put(out, "host_id", explanation.host_id);
  put(out, "message", explanation.message);
  Json hosts = Json::array();
  for (const HostVerdict& verdict : explanation.hosts) {
    Json entry = {{"host_id", verdict.host_id}, {"fits", verdict.reasons.empty()}};
    if (verdict.reasons.empty()) entry["score"] = verdict.score;
    Json reasons = Json::array();
    for (const PlacementReason& reason : verdict.reasons) {
      reasons.push_back({{"code", reason.code},
                         {"message", reason.text},
                         {"have", reason.have},
                         {"want", reason.want}});
    }
    if (!reasons.empty()) entry["reasons"] = std::move(reasons);
    put(entry, "gpu_summary", verdict.gpu_summary);
    hosts.push_back(std::move(entry));
  }
  out["hosts"] = std::move(hosts);
  return out;
}

Result<HostCapacity> parse_host_capacity(const json& value) {
  JsonReader reader(value, "");
  HostCapacity capacity = read_capacity(reader);
  if (auto done = reader.finish(); !done) return done.error();
  return capacity;
}

namespace {

HostInfo read_host(JsonReader& reader) {
  HostInfo host;
  host.id = reader.text("id").value_or("");
  host.url = reader.text("url").value_or("");
  host.region = reader.text("region").value_or("");
  host.arch = reader.text("arch").value_or("");
  host.backend = choice_in(reader, "backend", backend_of).value_or(Backend::firecracker);
  using Map = std::map<std::string, std::string>;
  host.labels = reader.text_map("labels").value_or(Map());
  host.state = choice_in(reader, "state", host_state_of).value_or(HostState::active);
  host.reachable = reader.flag("reachable").value_or(true);
  host.capacity =
      object_in<HostCapacity>(reader, "capacity", read_capacity).value_or(HostCapacity());
  host.allocated =
      object_in<HostCapacity>(reader, "allocated", read_capacity).value_or(HostCapacity());
  host.last_seen = reader.text("last_seen").value_or("");
  host.created_at = reader.text("created_at").value_or("");
  host.updated_at = reader.text("updated_at").value_or("");
  using Texts = std::vector<std::string>;
  host.warnings = reader.texts("warnings").value_or(Texts());
  return host;
}

// Hosts whose backend is not named run firecracker.
RegisterHostRequest read_registration(JsonReader& reader) {
  RegisterHostRequest request;
  request.id = reader.text("id").value_or("");
  request.url = reader.text("url").value_or("");
  request.token = reader.text("token").value_or("");
  request.region = reader.text("region").value_or("");
  const std::string backend = reader.text("backend").value_or("");
  const auto known = backend_of(backend);
  if (!known && !backend.empty()) {
    reader.complain_with(
        {ErrorCode::invalid_argument, "backend must be \"firecracker\" or \"qemu\""});
  }
  request.backend = known.value_or(Backend::firecracker);
  using Map = std::map<std::string, std::string>;
  request.labels = reader.text_map("labels").value_or(Map());
  request.capacity =
      object_in<HostCapacity>(reader, "capacity", read_capacity).value_or(HostCapacity());
  return request;
}

HostVerdict read_verdict(JsonReader& reader) {
  HostVerdict verdict;
  verdict.host_id = reader.text("host_id").value_or("");
  verdict.score = reader.integer("score").value_or(0);
  verdict.gpu_summary = reader.text("gpu_summary").value_or("");
  verdict.reasons = objects_in<PlacementReason>(reader, "reasons", [](JsonReader& inner) {
    return PlacementReason{.code = inner.text("code").value_or(""),
                           .text = inner.text("message").value_or(""),
                           .have = inner.text("have").value_or(""),
                           .want = inner.text("want").value_or("")};
  });
  return verdict;
}

}  // namespace

Result<HostInfo> parse_host_info(const json& value) {
  return json_detail::read_all<HostInfo>(value, "", read_host);
}

Result<HostPage> parse_host_page(const json& value) {
  return json_detail::read_all<HostPage>(value, "", [](JsonReader& reader) {
    return HostPage{.hosts = objects_in<HostInfo>(reader, "hosts", read_host),
                    .next_cursor = reader.text("next_cursor").value_or("")};
  });
}

Result<RegisterHostRequest> parse_register_host_request(const json& value) {
  return json_detail::read_all<RegisterHostRequest>(value, "", read_registration);
}

Result<Explanation> parse_explanation(const json& value) {
  return json_detail::read_all<Explanation>(value, "", [](JsonReader& reader) {
    return Explanation{.host_id = reader.text("host_id").value_or(""),
                       .message = reader.text("message").value_or(""),
                       .hosts = objects_in<HostVerdict>(reader, "hosts", read_verdict)};
  });
}

}  // namespace fuse
