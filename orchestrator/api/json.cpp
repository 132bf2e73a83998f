#include "orchestrator/api/json.h"

#include <array>
#include <nlohmann/json.hpp>

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

Json list_of(const std::vector<ExposeSpec>& expose) {
  Json out = Json::array();
  for (const ExposeSpec& entry : expose) out.push_back({{"port", entry.port}, {"as", entry.as}});
  return out;
}

Json list_of(const std::vector<Endpoint>& endpoints) {
  Json out = Json::array();
  for (const Endpoint& endpoint : endpoints) {
    Json entry = {{"as", endpoint.as}, {"url", endpoint.url}, {"port", endpoint.port}};
    put(entry, "host_port", endpoint.host_port);
    out.push_back(std::move(entry));
  }
  return out;
}

// {build: [{name, script, workdir}], run: {script, workdir}}
Json phases_json(const Phases& phases) {
  Json out = Json::object();
  if (!phases.build.empty()) {
    Json steps = Json::array();
    for (const BuildStep& step : phases.build) {
      Json entry = {{"name", step.name}, {"script", step.script}};
      put(entry, "workdir", step.workdir);
      steps.push_back(std::move(entry));
    }
    out["build"] = std::move(steps);
  }
  if (!phases.run.empty()) {
    out["run"] = {{"script", phases.run}};
    put(out["run"], "workdir", phases.workdir);
  }
  return out;
}

Phases read_phases(JsonReader& reader) {
  Phases phases;
  phases.build = objects_in<BuildStep>(reader, "build", [](JsonReader& step) {
    return BuildStep{.name = step.text("name").value_or(""),
                     .script = step.text("script").value_or(""),
                     .workdir = step.text("workdir").value_or("")};
  });
  struct Run {
    std::string script;
    std::string workdir;
  };
  const auto run = object_in<Run>(reader, "run", [](JsonReader& inner) {
    return Run{inner.text("script").value_or(""), inner.text("workdir").value_or("")};
  });
  if (run) {
    phases.run = run->script;
    phases.workdir = run->workdir;
  }
  return phases;
}

std::vector<ExposeSpec> read_expose(JsonReader& reader) {
  return objects_in<ExposeSpec>(reader, "expose", [](JsonReader& entry) {
    return ExposeSpec{.port = int32_in(entry, "port"), .as = entry.text("as").value_or("")};
  });
}

ResourceSpec read_spec(JsonReader& reader) {
  return {.cpus = int32_in(reader, "cpus"),
          .ram_mb = int32_in(reader, "ram_mb"),
          .storage_gb = int32_in(reader, "storage_gb"),
          .gpus = int32_in(reader, "gpus"),
          .gpu_kind = reader.text("gpu_kind").value_or(""),
          .gpu_profile = reader.text("gpu_profile").value_or(""),
          .region = reader.text("region").value_or(""),
          .arch = reader.text("arch").value_or(""),
          .max_runtime_seconds = reader.integer("max_runtime_seconds").value_or(0),
          .idle_timeout_seconds = reader.integer("idle_timeout_seconds").value_or(0),
          .image = reader.text("image").value_or(""),
          .host_id = reader.text("host_id").value_or(""),
          .labels = reader.text_map("labels").value_or(std::map<std::string, std::string>())};
}

HealthcheckSpec read_healthcheck(JsonReader& reader) {
  HealthcheckSpec check;
  check.http = object_in<HealthcheckHttp>(reader, "http", [](JsonReader& http) {
    return HealthcheckHttp{.port = int32_in(http, "port"), .path = http.text("path").value_or("")};
  });
  check.exec = reader.texts("exec").value_or(std::vector<std::string>());
  check.interval_seconds = reader.integer("interval_seconds").value_or(0);
  check.timeout_seconds = reader.integer("timeout_seconds").value_or(0);
  check.retries = int32_in(reader, "retries");
  check.start_period_seconds = reader.integer("start_period_seconds").value_or(0);
  return check;
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

// Reads a whole document with `read`, or gives the first problem.
template <class T, class F>
Result<T> read_all(const json& value, std::string path, F read) {
  JsonReader reader(value, std::move(path));
  T out = read(reader);
  if (auto done = reader.finish(); !done) return done.error();
  return out;
}

}  // namespace

Json to_json(const ResourceSpec& spec) {
  Json out = Json::object();
  put(out, "cpus", spec.cpus);
  put(out, "ram_mb", spec.ram_mb);
  put(out, "storage_gb", spec.storage_gb);
  put(out, "gpus", spec.gpus);
  put(out, "gpu_kind", spec.gpu_kind);
  put(out, "gpu_profile", spec.gpu_profile);
  put(out, "region", spec.region);
  put(out, "arch", spec.arch);
  put(out, "max_runtime_seconds", spec.max_runtime_seconds);
  put(out, "idle_timeout_seconds", spec.idle_timeout_seconds);
  put(out, "image", spec.image);
  put(out, "host_id", spec.host_id);
  put(out, "labels", spec.labels);
  return out;
}

Json to_json(const HealthcheckSpec& healthcheck) {
  Json out = Json::object();
  if (healthcheck.http) {
    out["http"] = {{"port", healthcheck.http->port}, {"path", healthcheck.http->path}};
  }
  put(out, "exec", healthcheck.exec);
  put(out, "interval_seconds", healthcheck.interval_seconds);
  put(out, "timeout_seconds", healthcheck.timeout_seconds);
  put(out, "retries", healthcheck.retries);
  put(out, "start_period_seconds", healthcheck.start_period_seconds);
  return out;
}

Json to_json(const CreateEnvironmentRequest& request) {
  Json out = Json::object();
  out["task_id"] = request.task_id;
  out["spec"] = to_json(request.spec);
  put(out, "manifest_inline", request.manifest_inline);
  put(out, "secrets", request.secrets);
  put(out, "files", request.files);
  put(out, "file_modes", request.file_modes);
  put(out, "startup_script", request.startup_script);
  if (!request.expose.empty()) out["expose"] = list_of(request.expose);
  if (request.healthcheck) out["healthcheck"] = to_json(*request.healthcheck);
  if (request.desktop) {
    out["desktop"] = {{"width", request.desktop->width}, {"height", request.desktop->height}};
  }
  put(out, "seed_snapshot_id", request.seed_snapshot_id);
  put(out, "startup_script_timeout_seconds", request.startup_script_timeout_seconds);
  put(out, "gateway_url", request.gateway_url);
  put(out, "gateway_token", request.gateway_token);
  if (request.phases) out["phases"] = phases_json(*request.phases);
  if (request.on_exit != OnExit::keep) out["on_exit"] = to_string(request.on_exit);
  put(out, "settle_seconds", request.settle_seconds);
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
  if (environment.health) {
    Json health = {{"state", environment.health->state}, {"since", environment.health->since}};
    put(health, "failures", environment.health->failures);
    put(health, "message", environment.health->message);
    out["health"] = std::move(health);
  }
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

Json to_json(const Error& error) {
  Json body = {{"code", to_string(error.code)}, {"message", valid_utf8(error.message)}};
  put(body, "details", error.details);
  return {{"error", std::move(body)}};
}

Result<ResourceSpec> parse_resource_spec(const json& value) {
  return read_all<ResourceSpec>(value, "spec", read_spec);
}

Result<CreateEnvironmentRequest> parse_create_request(const json& value) {
  return read_all<CreateEnvironmentRequest>(value, "", [](JsonReader& reader) {
    CreateEnvironmentRequest request;
    request.task_id = reader.text("task_id").value_or("");
    request.spec = object_in<ResourceSpec>(reader, "spec", read_spec).value_or(ResourceSpec());
    request.manifest_inline = reader.text("manifest_inline").value_or("");
    using Map = std::map<std::string, std::string>;
    request.secrets = reader.text_map("secrets").value_or(Map());
    request.files = reader.text_map("files").value_or(Map());
    request.file_modes = reader.text_map("file_modes").value_or(Map());
    request.startup_script = reader.text("startup_script").value_or("");
    request.expose = read_expose(reader);
    request.healthcheck = object_in<HealthcheckSpec>(reader, "healthcheck", read_healthcheck);
    request.desktop = object_in<DesktopSpec>(reader, "desktop", [](JsonReader& desktop) {
      return DesktopSpec{.width = int32_in(desktop, "width"),
                         .height = int32_in(desktop, "height")};
    });
    request.seed_snapshot_id = reader.text("seed_snapshot_id").value_or("");
    request.startup_script_timeout_seconds =
        reader.integer("startup_script_timeout_seconds").value_or(0);
    request.gateway_url = reader.text("gateway_url").value_or("");
    request.gateway_token = reader.text("gateway_token").value_or("");
    request.phases = object_in<Phases>(reader, "phases", read_phases);
    request.on_exit = choice_in(reader, "on_exit", on_exit_of).value_or(OnExit::keep);
    request.settle_seconds = reader.integer("settle_seconds");
    return request;
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

namespace {

struct Status {
  ErrorCode code;
  int status;
};
constexpr std::array<Status, 11> statuses = {{
    {ErrorCode::not_found, 404},
    {ErrorCode::route_not_found, 404},
    {ErrorCode::conflict, 409},
    {ErrorCode::invalid_argument, 400},
    {ErrorCode::payload_too_large, 413},
    {ErrorCode::unauthorized, 401},
    {ErrorCode::forbidden, 403},
    {ErrorCode::unavailable, 503},
    {ErrorCode::unimplemented, 501},
    {ErrorCode::internal, 500},
    {ErrorCode::unreachable, 502},
}};

std::optional<ErrorCode> code_named(std::string_view name) {
  for (const Status& entry : statuses) {
    if (to_string(entry.code) == name) return entry.code;
  }
  return std::nullopt;
}

}  // namespace

int http_status(ErrorCode code) {
  for (const Status& entry : statuses) {
    if (entry.code == code) return entry.status;
  }
  return 500;
}

ErrorCode error_code_of(int http_status) {
  for (const Status& entry : statuses) {
    if (entry.status == http_status) return entry.code;
  }
  return ErrorCode::internal;
}

Error parse_error(int status, std::string_view body) {
  const auto document = parse_json(body);
  if (document) {
    JsonReader reader(*document, "");
    const json* const object = reader.object("error");
    if (object != nullptr) {
      JsonReader fields(*object, "error");
      const std::string code = fields.text("code").value_or("");
      std::string message = fields.text("message").value_or("");
      auto details = fields.text_map("details").value_or(std::map<std::string, std::string>());
      if (fields.finish() && !code.empty()) {
        return {code_named(code).value_or(error_code_of(status)), std::move(message),
                std::move(details)};
      }
    }
  }
  constexpr std::size_t most_quoted = 300;
  const std::string_view said = trim(body).substr(0, most_quoted);
  return {error_code_of(status),
          said.empty() ? cat("HTTP ", status) : cat("HTTP ", status, ": ", valid_utf8(said))};
}

}  // namespace fuse
