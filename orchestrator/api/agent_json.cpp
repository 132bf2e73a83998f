#include "orchestrator/api/agent_json.h"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/text.h"
#include "orchestrator/api/json_detail.h"

namespace fuse {

using json_detail::int32_in;
using json_detail::objects_in;
using json_detail::put;
using json_detail::read_all;
using nlohmann::json;
using Json = nlohmann::ordered_json;
using Texts = std::vector<std::string>;

namespace {

// The wire's text for a field that is not there; nothing when all are.
std::optional<Error> missing_field(const json& value, std::initializer_list<const char*> keys) {
  for (const char* const key : keys) {
    if (value.is_object() && value.contains(key) && !value[key].is_null()) continue;
    return Error{ErrorCode::invalid_argument, cat("missing field: '", key, "'")};
  }
  return std::nullopt;
}

Json agent_device_json(const GpuDevice& device) {
  Json out = {{"index", device.index},
              {"uuid", device.uuid},
              {"model", device.model},
              {"pci_bus_id", device.pci_bus_id},
              {"memory_mb", device.memory_mb},
              {"driver_version", device.driver_version},
              {"compute_cap", device.compute_cap},
              {"mig_capable", device.mig_capable},
              {"mig_mode", device.mig_mode}};
  put(out, "iommu_group", device.iommu_group);
  put(out, "numa_node", device.numa_node);
  return out;
}

VmInfo read_vm(JsonReader& reader) {
  return {.vm_id = reader.text("vm_id").value_or(""),
          .uid = reader.text("uid").value_or(""),
          .url = reader.text("url").value_or(""),
          .cluster = reader.text("cluster").value_or(""),
          .alive = reader.flag("alive").value_or(true),
          .ended = reader.text("ended").value_or("")};
}

std::optional<std::uint32_t> parse_octal(std::string_view text) {
  std::uint32_t mode = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, mode, 8);
  if (failure != std::errc() || stop != end || text.empty() || mode > 07777U) return std::nullopt;
  return mode;
}

// The bytes of a base64 field.
std::string bytes_in(JsonReader& reader, std::string_view key) {
  const std::string text = reader.text(key).value_or("");
  auto bytes = base64_decode(text);
  if (!bytes) reader.complain(key, "is not base64");
  return std::move(bytes).value_or("");
}

BuildStep read_step(JsonReader& step) {
  return {.name = step.text("name").value_or(""),
          .script = step.text("script").value_or(""),
          .workdir = step.text("workdir").value_or("")};
}

}  // namespace

std::string octal_mode(std::uint32_t mode) {
  std::string digits;
  for (std::uint32_t rest = mode & 07777U; rest > 0; rest >>= 3U) {
    digits.insert(digits.begin(), static_cast<char>('0' + (rest & 7U)));
  }
  return cat("0", digits);
}

bool AgentHealth::has(std::string_view feature) const {
  return std::ranges::find(features, feature) != features.end();
}

AgentHealth own_health(std::string version) {
  using namespace agent_feature;  // NOLINT(google-build-using-namespace)
  return {.app_name = "qemu-agent",
          .version = std::move(version),
          .features = {std::string(uid), std::string(jobs), std::string(devices),
                       std::string(kinds), std::string(pipes)}};
}

Json to_json(const AgentHealth& health) {
  Json out = {{"ok", true}, {"app_name", health.app_name}};
  put(out, "version", health.version);
  put(out, "features", health.features);
  return out;
}

Json agent_capacity_json(const HostCapacity& capacity) {
  Json devices = Json::array();
  for (const GpuDevice& device : capacity.gpu_devices) devices.push_back(agent_device_json(device));
  Json out = {{"cpus", capacity.cpus},
              {"ram_mb", capacity.ram_mb},
              {"storage_gb", capacity.storage_gb},
              {"arch", capacity.arch},
              {"gpus", capacity.gpus},
              {"gpu_kind", capacity.gpu_kind},
              {"gpu_devices", std::move(devices)}};
  if (!capacity.mig_instances.empty()) {
    Json instances = Json::array();
    for (const MigInstance& instance : capacity.mig_instances) {
      instances.push_back({{"uuid", instance.uuid},
                           {"profile", instance.profile},
                           {"kind", instance.kind},
                           {"parent_gpu_uuid", instance.parent_gpu_uuid}});
    }
    out["mig_instances"] = std::move(instances);
    out["mig_profiles"] = capacity.mig_profiles;
  }
  put(out, "gpu_summary", capacity.gpu_summary);
  return out;
}

Json to_json(const CreateVmRequest& request) {
  Json out = {{"name", request.name}};
  put(out, "uid", request.uid);
  put(out, "cpus", request.cpus);
  put(out, "memory_mb", request.memory_mb);
  put(out, "storage_gb", request.storage_gb);
  out["region"] = request.region;
  put(out, "image", request.image);
  put(out, "gpus", request.gpus);
  put(out, "gpu_kind", request.gpu_kind);
  put(out, "gpu_profile", request.gpu_profile);
  put(out, "mig_instance_uuids", request.mig_instance_uuids);
  put(out, "gpu_device_uuids", request.gpu_device_uuids);
  return out;
}

Json to_json(const VmInfo& vm) {
  Json out = {{"vm_id", vm.vm_id}, {"url", vm.url}};
  put(out, "uid", vm.uid);
  put(out, "cluster", vm.cluster);
  if (!vm.alive) {
    out["alive"] = false;
    out["ended"] = valid_utf8(vm.ended);
  }
  return out;
}

Json to_json(const std::vector<VmInfo>& vms) {
  Json list = Json::array();
  for (const VmInfo& vm : vms) list.push_back(to_json(vm));
  return {{"vms", std::move(list)}};
}

Json to_json(const UploadFile& file) {
  Json out = {{"path", file.path}, {"content_b64", base64_encode(file.bytes)}};
  if (file.mode != 0) out["mode"] = octal_mode(file.mode);
  return out;
}

Json agent_exec_json(const ExecResult& result) {
  return {{"exit_code", result.exit_code},
          {"stdout", base64_encode(result.out)},
          {"stderr", base64_encode(result.err)}};
}

Json to_json(const StartAgentRequest& request) {
  Json expose = Json::array();
  for (const ExposeSpec& port : request.expose) {
    expose.push_back({{"port", port.port}, {"as", port.as}});
  }
  return {{"manifest_path", manifest_path},
          {"secrets_path", secrets_path},
          {"tls_cert_path", tls_cert_path},
          {"tls_key_path", tls_key_path},
          {"expose", std::move(expose)}};
}

Json to_json(const std::vector<Endpoint>& endpoints) {
  Json list = Json::array();
  for (const Endpoint& endpoint : endpoints) {
    list.push_back({{"as", endpoint.as},
                    {"url", endpoint.url},
                    {"port", endpoint.port},
                    {"host_port", endpoint.host_port}});
  }
  return {{"ok", true}, {"endpoints", std::move(list)}};
}

Json to_json(const JobSpec& job) {
  Json out = Json::object();
  if (!job.steps.empty()) {
    Json steps = Json::array();
    for (const BuildStep& step : job.steps) {
      Json entry = {{"name", step.name}, {"script", step.script}};
      put(entry, "workdir", step.workdir);
      steps.push_back(std::move(entry));
    }
    out["steps"] = std::move(steps);
  }
  put(out, "script", job.script);
  put(out, "env", job.env);
  put(out, "workdir", job.workdir);
  put(out, "timeout_seconds", job.timeout_seconds);
  put(out, "grace_seconds", job.grace_seconds);
  return out;
}

Result<AgentHealth> parse_agent_health(const json& value) {
  return read_all<AgentHealth>(value, "", [](JsonReader& reader) {
    return AgentHealth{.app_name = reader.text("app_name").value_or(""),
                       .version = reader.text("version").value_or(""),
                       .features = reader.texts("features").value_or(Texts())};
  });
}

Result<CreateVmRequest> parse_create_vm_request(const json& value) {
  return read_all<CreateVmRequest>(value, "", [](JsonReader& reader) {
    return CreateVmRequest{
        .name = reader.text("name").value_or(""),
        .uid = reader.text("uid").value_or(""),
        .cpus = int32_in(reader, "cpus"),
        .memory_mb = int32_in(reader, "memory_mb"),
        .storage_gb = int32_in(reader, "storage_gb"),
        .region = reader.text("region").value_or(""),
        .image = reader.text("image").value_or(""),
        .gpus = int32_in(reader, "gpus"),
        .gpu_kind = reader.text("gpu_kind").value_or(""),
        .gpu_profile = reader.text("gpu_profile").value_or(""),
        .mig_instance_uuids = reader.texts("mig_instance_uuids").value_or(Texts()),
        .gpu_device_uuids = reader.texts("gpu_device_uuids").value_or(Texts())};
  });
}

Result<VmInfo> parse_vm_info(const json& value) {
  return read_all<VmInfo>(value, "", read_vm);
}

Result<std::vector<VmInfo>> parse_vm_list(const json& value) {
  using Vms = std::vector<VmInfo>;
  return read_all<Vms>(
      value, "", [](JsonReader& reader) { return objects_in<VmInfo>(reader, "vms", read_vm); });
}

Result<UploadFile> parse_upload(const json& value) {
  if (auto missing = missing_field(value, {"path", "content_b64"})) return *std::move(missing);
  auto file = read_all<UploadFile>(value, "", [](JsonReader& reader) {
    UploadFile out{.path = reader.text("path").value_or("")};
    if (const auto mode = reader.text("mode")) {
      const auto bits = parse_octal(*mode);
      if (!bits) reader.complain("mode", cat("\"", *mode, "\" is not octal, as in \"0755\""));
      out.mode = bits.value_or(0);
    }
    return out;
  });
  if (!file) return file;
  if (!file->path.starts_with('/')) {
    return Error{ErrorCode::invalid_argument,
                 cat("path must be absolute, got \"", valid_utf8(file->path), "\"")};
  }
  const json& content = value["content_b64"];
  auto bytes = content.is_string() ? base64_decode(content.get_ref<const std::string&>())
                                   : std::optional<std::string>();
  if (!bytes) {
    return Error{ErrorCode::invalid_argument,
                 "bad base64: content_b64 must be standard base64 with padding"};
  }
  file->bytes = *std::move(bytes);
  return file;
}

Result<ExecRequest> parse_agent_exec_request(const json& value) {
  if (auto missing = missing_field(value, {"cmd"})) return *std::move(missing);
  JsonReader reader(value, "");
  ExecRequest request{.cmd = reader.texts("cmd").value_or(Texts())};
  if (request.cmd.empty()) {
    return Error{ErrorCode::invalid_argument, "cmd must be non-empty array"};
  }
  request.timeout_ms = reader.integer("timeout_ms").value_or(0);
  if (auto done = reader.finish(); !done) return done.error();
  return request;
}

Result<ExecResult> parse_agent_exec_result(const json& value) {
  return read_all<ExecResult>(value, "", [](JsonReader& reader) {
    return ExecResult{.exit_code = int32_in(reader, "exit_code"),
                      .out = bytes_in(reader, "stdout"),
                      .err = bytes_in(reader, "stderr")};
  });
}

Result<StartAgentRequest> parse_start_agent_request(const json& value) {
  if (auto missing = missing_field(value, {"manifest_path", "secrets_path"})) {
    return *std::move(missing);
  }
  return read_all<StartAgentRequest>(value, "", [](JsonReader& reader) {
    return StartAgentRequest{
        .expose = objects_in<ExposeSpec>(reader, "expose", [](JsonReader& port) {
          return ExposeSpec{.port = int32_in(port, "port"), .as = port.text("as").value_or("")};
        })};
  });
}

Result<std::vector<Endpoint>> parse_endpoints(const json& value) {
  using Endpoints = std::vector<Endpoint>;
  return read_all<Endpoints>(value, "", [](JsonReader& reader) {
    return objects_in<Endpoint>(reader, "endpoints", [](JsonReader& entry) {
      return Endpoint{.as = entry.text("as").value_or(""),
                      .url = entry.text("url").value_or(""),
                      .port = int32_in(entry, "port"),
                      .host_port = int32_in(entry, "host_port")};
    });
  });
}

Result<JobSpec> parse_job_spec(const json& value) {
  return read_all<JobSpec>(value, "", [](JsonReader& reader) {
    using Map = std::map<std::string, std::string>;
    return JobSpec{.steps = objects_in<BuildStep>(reader, "steps", read_step),
                   .script = reader.text("script").value_or(""),
                   .env = reader.text_map("env").value_or(Map()),
                   .workdir = reader.text("workdir").value_or(""),
                   .timeout_seconds = reader.integer("timeout_seconds").value_or(0),
                   .grace_seconds = reader.integer("grace_seconds").value_or(0)};
  });
}

}  // namespace fuse
