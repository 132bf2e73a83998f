#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "orchestrator/api/environment_api.h"
#include "orchestrator/api/host_api.h"
#include "orchestrator/api/key_api.h"
#include "orchestrator/api/types.h"

// The only place that spells the wire's field names.  Writers give objects in
// the contract's key order and leave empty optional fields out, never null.
// Parsers ignore unknown fields; a wrong kind is invalid_argument naming the
// field.
namespace fuse {

nlohmann::ordered_json to_json(const ResourceSpec& spec);
nlohmann::ordered_json to_json(const CreateEnvironmentRequest& request);
nlohmann::ordered_json to_json(const HealthcheckSpec& healthcheck);
nlohmann::ordered_json to_json(const Health& health);
nlohmann::ordered_json to_json(const JobStatus& job);
nlohmann::ordered_json to_json(const Environment& environment);
nlohmann::ordered_json to_json(const EnvironmentPage& page);
nlohmann::ordered_json to_json(const EnvironmentEvent& event);
nlohmann::ordered_json to_json(const ExecRequest& request);
// Text fields; invalid UTF-8 becomes U+FFFD.
nlohmann::ordered_json to_json(const ExecResult& result);
nlohmann::ordered_json to_json(const HostCapacity& capacity);
nlohmann::ordered_json to_json(const HostInfo& host);
nlohmann::ordered_json to_json(const HostPage& page);
nlohmann::ordered_json to_json(const RegisterHostRequest& request);
nlohmann::ordered_json to_json(const Explanation& explanation);
nlohmann::ordered_json to_json(const NewApiKey& key);
// {"api_keys":[...]}
nlohmann::ordered_json to_json(const std::vector<ApiKey>& keys);
// {"error":{"code","message","details"}}
nlohmann::ordered_json to_json(const Error& error);

Result<ResourceSpec> parse_resource_spec(const nlohmann::json& value);
Result<CreateEnvironmentRequest> parse_create_request(const nlohmann::json& value);
Result<HealthcheckSpec> parse_healthcheck(const nlohmann::json& value);
// invalid_argument also for a state that is none.
Result<Health> parse_health(const nlohmann::json& value);
Result<JobStatus> parse_job_status(const nlohmann::json& value);
Result<Environment> parse_environment(const nlohmann::json& value);
Result<EnvironmentPage> parse_environment_page(const nlohmann::json& value);
Result<EnvironmentEvent> parse_environment_event(const nlohmann::json& value);
Result<ExecRequest> parse_exec_request(const nlohmann::json& value);
Result<ExecResult> parse_exec_result(const nlohmann::json& value);
Result<HostCapacity> parse_host_capacity(const nlohmann::json& value);
Result<HostInfo> parse_host_info(const nlohmann::json& value);
Result<HostPage> parse_host_page(const nlohmann::json& value);
Result<RegisterHostRequest> parse_register_host_request(const nlohmann::json& value);
Result<Explanation> parse_explanation(const nlohmann::json& value);
Result<NewApiKey> parse_new_api_key(const nlohmann::json& value);
Result<std::vector<ApiKey>> parse_api_keys(const nlohmann::json& value);
// The error of an answer with HTTP `status`; made from status and body text
// when the body is not the wire's error object.
Error parse_error(int status, std::string_view body);

// The HTTP status of an error code, and back.
int http_status(ErrorCode code);
ErrorCode error_code_of(int http_status);

}  // namespace fuse
