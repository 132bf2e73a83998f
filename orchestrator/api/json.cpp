#include "orchestrator/api/json.h"

#include <nlohmann/json.hpp>

#include "orchestrator/api/json_detail.h"

namespace fuse {

using json_detail::choice_in;
using json_detail::int32_in;
using json_detail::object_in;
using json_detail::objects_in;
using json_detail::put;
using json_detail::read_all;
using json_detail::read_spec;
using nlohmann::json;
using Json = nlohmann::ordered_json;

namespace {

Json list_of(const std::vector<Endpoint>& endpoints) {
  Json out = Json::array();
  for (const Endpoint& endpoint : endpoints) {
    Json entry = {{"as", endpoint.as}, {"url", endpoint.url}, {"port", endpoint.port}};
    put(entry, "host_port", endpoint.host_port);
    out.push_back(std::move(entry));
  }
  return out;
}

JobStatus read_job(JsonReader& reader) {
  JobStatus job;
  job.state = choice_in(reader, "state", job_state_of).value_or(JobState::pending);
  job.phase = choice_in(reader, "phase", job_phase_of).value_or(JobPhase::build);
  job.step = int32_in(reader, "step");
  job.steps = int32_in(reader, "steps");
  job.step_name = reader.text("step_name").value_or("");
  if (reader.has("exit_code")) job.exit_code = int32_in(reader, "exit_code");
  if (reader.has("signal")) job.signal = int32_in(reader, "signal");
  job.reason = reader.text("reason").value_or("");
  job.started_at = reader.text("started_at").value_or("");
  job.finished_at = reader.text("finished_at").value_or("");
  job.log_bytes = static_cast<std::uint64_t>(reader.integer("log_bytes").value_or(0));
  return job;
}

Health read_health(JsonReader& reader) {
  return {.state = reader.text("state").value_or(""),
          .since = reader.text("since").value_or(""),
          .failures = int32_in(reader, "failures"),
          .message = reader.text("message").value_or("")};
}

Environment read_environment(JsonReader& reader) {
  Environment environment;
  environment.id = reader.text("id").value_or("");
  environment.uid = reader.text("uid").value_or("");
  environment.state =
      choice_in(reader, "state", environment_state_of).value_or(EnvironmentState::provisioning);
  environment.task_id = reader.text("task_id").value_or("");
  environment.host_id = reader.text("host_id").value_or("");
  environment.url = reader.text("url").value_or("");
  environment.spec = object_in<ResourceSpec>(reader, "spec", read_spec).value_or(ResourceSpec());
  environment.created_at = reader.text("created_at").value_or("");
  environment.updated_at = reader.text("updated_at").value_or("");
  environment.error = reader.text("error").value_or("");
  using Texts = std::vector<std::string>;
  environment.gpu_device_uuids = reader.texts("gpu_device_uuids").value_or(Texts());
  environment.mig_instance_uuids = reader.texts("mig_instance_uuids").value_or(Texts());
  environment.endpoints = objects_in<Endpoint>(reader, "endpoints", [](JsonReader& entry) {
    return Endpoint{.as = entry.text("as").value_or(""),
                    .url = entry.text("url").value_or(""),
                    .port = int32_in(entry, "port"),
                    .host_port = int32_in(entry, "host_port")};
  });
  environment.health = object_in<Health>(reader, "health", read_health);
  environment.job = object_in<JobStatus>(reader, "job", read_job);
  return environment;
}

}  // namespace

Json to_json(const Health& health) {
  Json out = {{"state", health.state}, {"since", health.since}};
  put(out, "failures", health.failures);
  put(out, "message", health.message);
  return out;
}

Json to_json(const JobStatus& job) {
  Json out = Json::object();
  out["phase"] = to_string(job.phase);
  out["state"] = to_string(job.state);
  put(out, "step", job.step);
  put(out, "steps", job.steps);
  put(out, "step_name", job.step_name);
  put(out, "exit_code", job.exit_code);
  put(out, "signal", job.signal);
  put(out, "reason", job.reason);
  put(out, "started_at", job.started_at);
  put(out, "finished_at", job.finished_at);
  out["log_bytes"] = job.log_bytes;
  return out;
}

Json to_json(const Environment& environment) {
  Json out = Json::object();
  out["id"] = environment.id;
  put(out, "uid", environment.uid);
  out["state"] = to_string(environment.state);
  out["task_id"] = environment.task_id;
  put(out, "host_id", environment.host_id);
  out["url"] = environment.url;
  out["spec"] = to_json(environment.spec);
  out["created_at"] = environment.created_at;
  out["updated_at"] = environment.updated_at;
  put(out, "error", environment.error);
  if (!environment.endpoints.empty()) out["endpoints"] = list_of(environment.endpoints);
  put(out, "gpu_device_uuids", environment.gpu_device_uuids);
  put(out, "mig_instance_uuids", environment.mig_instance_uuids);
  if (environment.health) out["health"] = to_json(*environment.health);
  if (environment.job) out["job"] = to_json(*environment.job);
  return out;
}

Json to_json(const EnvironmentPage& page) {
  Json environments = Json::array();
  for (const Environment& environment : page.environments) {
    environments.push_back(to_json(environment));
  }
  Json out = {{"environments", std::move(environments)}};
  put(out, "next_cursor", page.next_cursor);
  return out;
}

Json to_json(const EnvironmentEvent& event) {
  Json out = Json::object();
  out["id"] = event.id;
  out["event"] = event.event;
  out["vm_id"] = event.vm_id;
  if (event.state) out["state"] = to_string(*event.state);
  put(out, "url", event.url);
  put(out, "error", event.error);
  out["updated_at"] = event.updated_at;
  put(out, "key", event.key);
  put(out, "message", event.message);
  put(out, "index", event.index);
  put(out, "total", event.total);
  put(out, "duration_ms", event.duration_ms);
  put(out, "exit_code", event.exit_code);
  if (event.job) out["job"] = to_json(*event.job);
  return out;
}

Json to_json(const ExecRequest& request) {
  Json out = Json::object();
  put(out, "cmd", request.cmd);
  put(out, "shell", request.shell);
  put(out, "timeout_ms", request.timeout_ms);
  return out;
}

Json to_json(const ExecResult& result) {
  return {{"exit_code", result.exit_code},
          {"stdout", valid_utf8(result.out)},
          {"stderr", valid_utf8(result.err)}};
}

Result<Health> parse_health(const json& value) {
  return read_all<Health>(value, "health", [](JsonReader& reader) {
    Health health = read_health(reader);
    const std::string& state = health.state;
    if (state != "starting" && state != "passing" && state != "failing") {
      reader.complain("state", cat("\"", state, "\" is not one of its values"));
    }
    return health;
  });
}

Result<JobStatus> parse_job_status(const json& value) {
  return read_all<JobStatus>(value, "job", read_job);
}

Result<Environment> parse_environment(const json& value) {
  return read_all<Environment>(value, "", read_environment);
}

Result<EnvironmentPage> parse_environment_page(const json& value) {
  return read_all<EnvironmentPage>(value, "", [](JsonReader& reader) {
    EnvironmentPage page;
    page.environments = objects_in<Environment>(reader, "environments", read_environment);
    page.next_cursor = reader.text("next_cursor").value_or("");
    return page;
  });
}

Result<EnvironmentEvent> parse_environment_event(const json& value) {
  return read_all<EnvironmentEvent>(value, "", [](JsonReader& reader) {
    EnvironmentEvent event;
    event.id = reader.text("id").value_or("");
    event.event = reader.text("event").value_or("");
    event.vm_id = reader.text("vm_id").value_or("");
    event.state = choice_in(reader, "state", environment_state_of);
    event.url = reader.text("url").value_or("");
    event.error = reader.text("error").value_or("");
    event.updated_at = reader.text("updated_at").value_or("");
    event.key = reader.text("key").value_or("");
    event.message = reader.text("message").value_or("");
    event.index = int32_in(reader, "index");
    event.total = int32_in(reader, "total");
    event.duration_ms = reader.integer("duration_ms");
    if (reader.has("exit_code")) event.exit_code = int32_in(reader, "exit_code");
    event.job = object_in<JobStatus>(reader, "job", read_job);
    return event;
  });
}

Result<ExecRequest> parse_exec_request(const json& value) {
  return read_all<ExecRequest>(value, "", [](JsonReader& reader) {
    return ExecRequest{.cmd = reader.texts("cmd").value_or(std::vector<std::string>()),
                       .shell = reader.text("shell").value_or(""),
                       .timeout_ms = reader.integer("timeout_ms").value_or(0)};
  });
}

Result<ExecResult> parse_exec_result(const json& value) {
  return read_all<ExecResult>(value, "", [](JsonReader& reader) {
    return ExecResult{.exit_code = int32_in(reader, "exit_code"),
                      .out = reader.text("stdout").value_or(""),
                      .err = reader.text("stderr").value_or("")};
  });
}

}  // namespace fuse
