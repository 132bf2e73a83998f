#include "orchestrator/api/json.h"

#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "tests/catch.h"

using namespace std::string_literals;

namespace fuse {
namespace {

// A request with every field set, each to a value of its own.
CreateEnvironmentRequest full_request() {
  CreateEnvironmentRequest request;
  request.task_id = "train";
  request.spec = {.cpus = 2,
                  .ram_mb = 2048,
                  .storage_gb = 10,
                  .gpus = 1,
                  .gpu_kind = "a100",
                  .gpu_profile = "1g.10gb",
                  .region = "eu",
                  .arch = "amd64",
                  .max_runtime_seconds = 3600,
                  .idle_timeout_seconds = 60,
                  .image = "cuda-12",
                  .host_id = "gpu-1",
                  .labels = {{"team", "ml"}}};
  request.manifest_inline = "e30=";
  request.secrets = {{"token", "s3cret"}};
  request.files = {{"/workspace/a", "YQ=="}};
  request.file_modes = {{"/workspace/a", "0755"}};
  request.startup_script = "set -eu\n";
  request.expose = {{.port = 8080, .as = "http"}};
  request.healthcheck = HealthcheckSpec{.http = HealthcheckHttp{.port = 80, .path = "/"},
                                        .exec = {},
                                        .interval_seconds = 5,
                                        .timeout_seconds = 2,
                                        .retries = 3,
                                        .start_period_seconds = 1};
  request.desktop = DesktopSpec{.width = 640, .height = 480};
  request.seed_snapshot_id = "snap";
  request.startup_script_timeout_seconds = 20;
  request.gateway_url = "http://gateway";
  request.gateway_token = "gate";
  request.phases = Phases{.build = {{.name = "deps", .script = "make", .workdir = "/workspace/x"}},
                          .run = "python train.py",
                          .workdir = "/workspace"};
  request.on_exit = OnExit::destroy;
  request.settle_seconds = 0;
  return request;
}

Environment full_environment() {
  Environment environment;
  environment.id = "fuse-train";
  environment.uid = "01HZZZZZZZZZZZZZZZZZZZZZZZ";
  environment.state = EnvironmentState::running;
  environment.task_id = "train";
  environment.host_id = "local";
  environment.url = "127.0.0.1:1";
  environment.spec.cpus = 1;
  environment.created_at = "2026-01-02T03:04:05Z";
  environment.updated_at = "2026-01-02T03:04:06Z";
  environment.error = "none";
  environment.endpoints = {{.as = "http", .url = "127.0.0.1:2", .port = 80, .host_port = 2}};
  environment.health =
      Health{.state = "failing", .since = "2026-01-02T03:04:05Z", .failures = 2, .message = "no"};
  environment.job = JobStatus{.state = JobState::exited,
                              .phase = JobPhase::run,
                              .step = 1,
                              .steps = 2,
                              .step_name = "deps",
                              .exit_code = 137,
                              .signal = 9,
                              .reason = "oom",
                              .started_at = "2026-01-02T03:04:05Z",
                              .finished_at = "2026-01-02T03:04:06Z",
                              .log_bytes = 12};
  return environment;
}

nlohmann::json plain(const nlohmann::ordered_json& value) {
  return nlohmann::json::parse(value.dump());
}

std::vector<std::string> keys_of(const nlohmann::ordered_json& object) {
  std::vector<std::string> keys;
  for (const auto& entry : object.items()) keys.push_back(entry.key());
  return keys;
}

TEST_CASE("a create request survives the way over the wire") {
  const auto json = to_json(full_request());
  const auto read = parse_create_request(plain(json));
  REQUIRE(read);
  CHECK(to_json(*read).dump() == json.dump());
}

TEST_CASE("a create request names its fields in the contract's order") {
  CHECK(keys_of(to_json(full_request())) ==
        std::vector<std::string>{"task_id", "spec", "manifest_inline", "secrets", "files",
                                 "file_modes", "startup_script", "expose", "healthcheck", "desktop",
                                 "seed_snapshot_id", "startup_script_timeout_seconds",
                                 "gateway_url", "gateway_token", "phases", "on_exit",
                                 "settle_seconds"});
  CHECK(keys_of(to_json(full_request().spec)) ==
        std::vector<std::string>{"cpus", "ram_mb", "storage_gb", "gpus", "gpu_kind", "gpu_profile",
                                 "region", "arch", "max_runtime_seconds", "idle_timeout_seconds",
                                 "image", "host_id", "labels"});
}

TEST_CASE("empty optional fields are left out, never null") {
  CHECK(to_json(CreateEnvironmentRequest()).dump() == R"({"task_id":"","spec":{}})");
  CHECK(to_json(Environment()).dump() ==
        R"({"id":"","state":"provisioning","task_id":"","url":"","spec":{},)"
        R"("created_at":"","updated_at":""})");
}

TEST_CASE("an environment survives the way over the wire") {
  const auto json = to_json(full_environment());
  const auto read = parse_environment(plain(json));
  REQUIRE(read);
  CHECK(to_json(*read).dump() == json.dump());
}

TEST_CASE("only a state event carries a top-level state") {
  EnvironmentEvent step{.id = "ab",
                        .event = "step",
                        .vm_id = "fuse-train",
                        .state = std::nullopt,
                        .url = "",
                        .error = "",
                        .updated_at = "2026-01-02T03:04:05Z",
                        .key = "build",
                        .message = "deps",
                        .index = 1,
                        .total = 2,
                        .duration_ms = 0,
                        .exit_code = 0,
                        .job = std::nullopt};
  const auto json = to_json(step);
  CHECK_FALSE(json.contains("state"));
  const auto read = parse_environment_event(plain(json));
  REQUIRE(read);
  CHECK(to_json(*read).dump() == json.dump());
}

TEST_CASE("a field of the wrong kind is named by its path") {
  const auto read = parse_create_request(
      nlohmann::json::parse(R"({"task_id":"a","spec":{"cpus":"two","gpus":true}})"));
  REQUIRE_FALSE(read);
  CHECK(read.error().code == ErrorCode::invalid_argument);
  CHECK(read.error().message == "spec.cpus: must be a whole number");
}

TEST_CASE("a number beyond 32 bits is refused, not wrapped") {
  const auto read = parse_create_request(nlohmann::json::parse(R"({"spec":{"cpus":4294967297}})"));
  REQUIRE_FALSE(read);
  CHECK(read.error().message == "spec.cpus: is out of range");
}

TEST_CASE("unknown and null fields are ignored") {
  const auto read = parse_create_request(
      nlohmann::json::parse(R"({"task_id":"a","spec":{"cpus":null,"later":1},"new":{}})"));
  REQUIRE(read);
  CHECK(read->spec.cpus == 0);
}

TEST_CASE("an element of a list is named by its index") {
  const auto read = parse_create_request(
      nlohmann::json::parse(R"({"expose":[{"port":1,"as":"a"},{"port":"x"}]})"));
  REQUIRE_FALSE(read);
  CHECK(read.error().message == "expose[1].port: must be a whole number");
}

TEST_CASE("an error survives the way over the wire with its details") {
  const Error error{ErrorCode::unavailable, "no host", {{"reason", "placement"}}};
  const Error read = parse_error(503, to_json(error).dump());
  CHECK(read.code == ErrorCode::unavailable);
  CHECK(read.message == "no host");
  CHECK(read.details == error.details);
}

TEST_CASE("an answer that is no error object still becomes an error") {
  CHECK(parse_error(404, "vm not found\n").message == "HTTP 404: vm not found");
  CHECK(parse_error(404, "vm not found\n").code == ErrorCode::not_found);
  CHECK(parse_error(502, "").message == "HTTP 502");
  CHECK(parse_error(500, R"({"error":"text"})").code == ErrorCode::internal);
  CHECK(parse_error(418, std::string(100000, 'x')).message.size() < 400);
}

TEST_CASE("the guest's output becomes valid UTF-8 on the wire") {
  const auto json = to_json(ExecResult{.exit_code = 3, .out = "a\xFF"s, .err = ""});
  CHECK(json.dump() == "{\"exit_code\":3,\"stdout\":\"a\xEF\xBF\xBD\",\"stderr\":\"\"}");
}

TEST_CASE("a host survives the way over the wire") {
  HostInfo host;
  host.id = "gpu-1";
  host.url = "http://gpu-1:8091";
  host.backend = Backend::qemu;
  host.state = HostState::cordoned;
  host.reachable = false;
  host.capacity.cpus = 64;
  host.capacity.mig_profiles = {{"1g.10gb", 7}};
  host.capacity.gpu_devices = {GpuDevice{.index = 0,
                                         .uuid = "GPU-1",
                                         .model = "NVIDIA A100",
                                         .pci_bus_id = "0000:41:00.0",
                                         .memory_mb = 40960,
                                         .driver_version = "535",
                                         .compute_cap = "8.0",
                                         .mig_capable = true,
                                         .mig_mode = "Enabled",
                                         .iommu_group = "12",
                                         .numa_node = 1}};
  host.capacity.mig_instances = {
      {.uuid = "MIG-1", .profile = "1g.10gb", .kind = "a100", .parent_gpu_uuid = "GPU-1"}};
  host.allocated.gpu_device_uuids = {"GPU-1"};
  const auto json = to_json(host);
  const auto read = parse_host_info(plain(json));
  REQUIRE(read);
  CHECK(to_json(*read).dump() == json.dump());
}

}  // namespace
}  // namespace fuse
