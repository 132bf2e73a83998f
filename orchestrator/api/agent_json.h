#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "orchestrator/api/host_agent.h"

// The JSON of the host agent's wire: the other half of json.h, by the same
// rules.  A body's field that is required and missing is invalid_argument
// "missing field: 'F'", the wire's own text.
namespace fuse {

// What an agent says of itself.  One without `features` is another
// implementation: it knows no uids and no jobs.
struct AgentHealth {
  std::string app_name{};
  std::string version{};
  std::vector<std::string> features{};
  [[nodiscard]] bool has(std::string_view feature) const;
};

// The features that our own agent has.
namespace agent_feature {
inline constexpr std::string_view uid = "uid";    // create takes one; ids in paths may be one
inline constexpr std::string_view jobs = "jobs";  // the job and log routes
inline constexpr std::string_view devices = "gpu-device-uuids";
inline constexpr std::string_view kinds = "kind-substring";
inline constexpr std::string_view pipes = "attach-pipes";  // attach with tty=0
}  // namespace agent_feature
AgentHealth own_health(std::string version);

// Headers that a create carries beside its body.
inline constexpr std::string_view idempotency_header = "Idempotency-Key";
inline constexpr std::string_view cluster_header = "X-Fuse-Cluster";
// Where the answer of a log route begins, when that is not where it was asked to.
inline constexpr std::string_view log_offset_header = "X-Fuse-Log-Offset";

// Where the files that start-agent names are put before.
inline constexpr std::string_view manifest_path = "/fuse/manifest.json";
inline constexpr std::string_view secrets_path = "/fuse/secrets.json";
inline constexpr std::string_view tls_cert_path = "/fuse/tls/cert.pem";
inline constexpr std::string_view tls_key_path = "/fuse/tls/key.pem";

// A file's mode as the wire has it: "0755".
std::string octal_mode(std::uint32_t mode);

nlohmann::ordered_json to_json(const AgentHealth& health);
// As an agent's GET /v1/capacity has it: every field of a device, [] for no
// devices, the MIG fields only with instances.
nlohmann::ordered_json agent_capacity_json(const HostCapacity& capacity);
// Sizes of 0 are left out, since other agents would take them at their word.
// What goes into headers is not in it.
nlohmann::ordered_json to_json(const CreateVmRequest& request);
nlohmann::ordered_json to_json(const VmInfo& vm);
nlohmann::ordered_json to_json(const std::vector<VmInfo>& vms);  // {"vms": [...]}
nlohmann::ordered_json to_json(const UploadFile& file);
// Output as base64, byte for byte.
nlohmann::ordered_json agent_exec_json(const ExecResult& result);
nlohmann::ordered_json to_json(const StartAgentRequest& request);
nlohmann::ordered_json to_json(const std::vector<Endpoint>& endpoints);  // {"ok", "endpoints"}
nlohmann::ordered_json to_json(const JobSpec& job);

Result<AgentHealth> parse_agent_health(const nlohmann::json& value);
Result<CreateVmRequest> parse_create_vm_request(const nlohmann::json& value);
Result<VmInfo> parse_vm_info(const nlohmann::json& value);
Result<std::vector<VmInfo>> parse_vm_list(const nlohmann::json& value);
Result<UploadFile> parse_upload(const nlohmann::json& value);
// invalid_argument "cmd must be non-empty array" when it is not.
Result<ExecRequest> parse_agent_exec_request(const nlohmann::json& value);
Result<ExecResult> parse_agent_exec_result(const nlohmann::json& value);
Result<StartAgentRequest> parse_start_agent_request(const nlohmann::json& value);
Result<std::vector<Endpoint>> parse_endpoints(const nlohmann::json& value);
Result<JobSpec> parse_job_spec(const nlohmann::json& value);

}  // namespace fuse
