#include <nlohmann/json.hpp>

#include "orchestrator/api/json.h"
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

Json list_of(const std::vector<ExposeSpec>& expose) {
  Json out = Json::array();
  for (const ExposeSpec& entry : expose) out.push_back({{"port", entry.port}, {"as", entry.as}});
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

}  // namespace

ResourceSpec json_detail::read_spec(JsonReader& reader) {
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

Result<HealthcheckSpec> parse_healthcheck(const json& value) {
  return read_all<HealthcheckSpec>(value, "healthcheck", read_healthcheck);
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

}  // namespace fuse
