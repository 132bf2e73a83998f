#include <chrono>
#include <future>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "orchestrator/api/json.h"
#include "tests/orchestrator/engine.h"

namespace fuse {
namespace {

using Lines = std::vector<std::string>;

const FakeHostAgent::Vm& vm_of(const std::map<std::string, FakeHostAgent::Vm>& vms,
                               const Environment& environment) {
  const auto found = vms.find(environment.uid);
  if (found == vms.end()) FAIL("the host has no such vm");
  return found->second;
}

TEST_CASE("a job is placed, delivered, started, followed to its end and taken down") {
  Engine engine;
  auto request = job_request("train");
  request.phases->build = {{"deps", "pip install -r r.txt", "/workspace"},
                           {"data", "make data", ""}};
  request.on_exit = OnExit::destroy;
  const Environment environment = engine.create(request);
  CHECK(environment.id == "fuse-train");
  CHECK(environment.state == EnvironmentState::provisioning);
  CHECK(environment.job.has_value());

  engine.run_until_idle();
  CHECK(engine.get("fuse-train").state == EnvironmentState::running);
  engine.host.set_job(environment.uid,
                      {.state = JobState::running, .phase = JobPhase::run, .step = 2, .steps = 2});
  engine.run_for(std::chrono::seconds(1));
  CHECK(engine.get("fuse-train").job->phase == JobPhase::run);
  engine.host.set_job(environment.uid, {.state = JobState::exited,
                                        .phase = JobPhase::done,
                                        .step = 2,
                                        .steps = 2,
                                        .exit_code = 7,
                                        .reason = "exited"});
  engine.run_for(std::chrono::seconds(1));

  const Environment ended = engine.get(environment.uid);
  CHECK(ended.state == EnvironmentState::destroyed);
  CHECK(ended.job->exit_code == 7);
  CHECK(engine.host.vms().empty());
  CHECK(engine.host.violations().empty());
  CHECK(lines_of(engine.events(environment.uid)) ==
        Lines{"state provisioning",  "step schedule done",    "step create_vm",
              "step create_vm done", "step deliver",          "step deliver done",
              "step start_agent",    "step start_agent done", "step start_job",
              "step start_job done", "state running",         "job build running",
              "step build 1/2",      "step build 1/2 done",   "step build 2/2",
              "step build 2/2 done", "job run running",       "job done exited 7",
              "state destroying",    "state destroyed"});
}

TEST_CASE("the vm gets what was asked for, with defaults for the rest") {
  Engine engine;
  auto request = job_request("My_App");
  request.spec.region = "";
  const Environment environment = engine.create(request);
  engine.run_until_idle();
  const auto vms = engine.host.vms();
  const CreateVmRequest& wanted = vm_of(vms, environment).request;
  CHECK(wanted.name == "fuse-My_App");
  CHECK(wanted.uid == environment.uid);
  CHECK(wanted.cpus == 1);
  CHECK(wanted.memory_mb == 1024);
  CHECK(wanted.image == "base");
  CHECK(wanted.cluster == engine.store->cluster());
  CHECK_FALSE(wanted.idempotency_key.empty());
  CHECK(engine.get("fuse-My_App").url == "qemu://fuse-my_app");
}

TEST_CASE("a guest gets a certificate and a token of its own where that is wanted") {
  Engine engine;
  engine.worker =
      std::make_unique<Worker>(*engine.store, engine.hosts, engine.clock, engine.log,
                               WorkerOptions{.owner = "first", .guest_credentials = true});
  auto request = job_request("known");
  const Environment environment = engine.create(request);
  engine.run_until_idle();
  const auto first = vm_of(engine.host.vms(), environment).files;
  CHECK(first.at("/fuse/tls/cert.pem").bytes.starts_with("-----BEGIN CERTIFICATE-----"));
  CHECK(first.at("/fuse/tls/key.pem").bytes.starts_with("-----BEGIN EC PRIVATE KEY-----"));
  CHECK(first.at("/fuse/auth-token").bytes.size() == 64);

  EnvironmentService service(*engine.store, engine.hosts, engine.activity, engine.clock,
                             {.guest_credentials = true});
  must(service.rotate_token(environment.id));
  const auto second = vm_of(engine.host.vms(), environment).files;
  for (const std::string file : {"/fuse/tls/cert.pem", "/fuse/tls/key.pem", "/fuse/auth-token"}) {
    CHECK(second.at(file).bytes != first.at(file).bytes);
  }
  CHECK(engine.host.calls().back() == "start_agent");
  CHECK(service.rotate_token("fuse-none").error().code == ErrorCode::not_found);

  const auto without = engine.service.rotate_token(environment.id);
  REQUIRE_FALSE(without);
  CHECK(without.error().code == ErrorCode::unimplemented);
}

TEST_CASE("files, settings and secrets are in the guest before its job starts") {
  Engine engine;
  auto request = job_request("files");
  request.manifest_inline = base64_encode(
      R"({"version":"1","machine":{"workspace":"/w","env":{"TOKEN":{"secret":"t"},"MODE":{"value":"it's"},"bad-name":{"value":"x"}}},"services":{}})");
  request.secrets = {{"t", "hush-hush-hush"}};
  request.files = {{"/workspace/run.sh", base64_encode("#!/bin/sh\n")}};
  request.file_modes = {{"/workspace/run.sh", "0755"}};
  request.healthcheck = HealthcheckSpec{.http = HealthcheckHttp{.port = 80, .path = "/"}};
  request.spec.max_runtime_seconds = 3600;
  const Environment environment = engine.create(request);
  engine.clock.move(std::chrono::seconds(100));
  engine.run_until_idle();

  const auto vms = engine.host.vms();
  const auto& vm = vm_of(vms, environment);
  CHECK(vm.files.at("/fuse/secrets.json").bytes == R"({"t":"hush-hush-hush"})");
  CHECK(vm.files.at("/fuse/env").bytes == "MODE='it'\\''s'\nTOKEN='hush-hush-hush'\n");
  CHECK(vm.files.at("/fuse/healthcheck.json").bytes == R"({"http":{"port":80,"path":"/"}})");
  CHECK(vm.files.at("/workspace/run.sh").bytes == "#!/bin/sh\n");
  CHECK(vm.files.at("/workspace/run.sh").mode == 0755);
  CHECK(vm.files.count("/fuse/manifest.json") == 1);
  CHECK(vm.job->script == "python train.py");
  CHECK(vm.job->env == std::map<std::string, std::string>{{"FUSE_GPU_COUNT", "0"},
                                                          {"FUSE_TASK_ID", "files"},
                                                          {"MODE", "it's"},
                                                          {"TOKEN", "hush-hush-hush"}});
  CHECK(vm.job->timeout_seconds == 3500);
  const auto left = must(transact<std::optional<CreateEnvironmentRequest>>(
      *engine.store, [&](StoreTx& tx) { return tx.deliveries.read(environment.uid); }));
  CHECK_FALSE(left.has_value());
}

TEST_CASE("without max_runtime a job has no limit") {
  Engine engine;
  const Environment environment = engine.create(job_request("endless"));
  engine.run_until_idle();
  const auto vms = engine.host.vms();
  CHECK(vm_of(vms, environment).job->timeout_seconds == 0);
}

TEST_CASE("a startup script runs inside the create, and its ports are opened after it") {
  Engine engine;
  CreateEnvironmentRequest request{.task_id = "web"};
  request.startup_script = "set -eu\n./start.sh\n";
  request.startup_script_timeout_seconds = 15;
  request.expose = {{.port = 8080, .as = "http"}};
  const Environment environment = engine.create(request);
  engine.run_until_idle();
  const Environment up = engine.get("fuse-web");
  CHECK(up.state == EnvironmentState::running);
  REQUIRE(up.endpoints.size() == 1);
  CHECK(up.endpoints[0].url == "127.0.0.1:28080");
  CHECK_FALSE(up.job.has_value());
  const auto vms = engine.host.vms();
  const auto& vm = vm_of(vms, environment);
  REQUIRE(vm.execs.size() == 1);
  CHECK(vm.execs[0].cmd == Lines{"sh", "-lc", request.startup_script});
  CHECK(vm.execs[0].timeout_ms == 15'000);
}

TEST_CASE("a startup script that fails takes its vm with it") {
  Engine engine;
  engine.host.on_exec = [](const ExecRequest&) {
    return ExecResult{.exit_code = 90, .err = "no such token: hush-hush-hush\n"};
  };
  CreateEnvironmentRequest request{.task_id = "web", .secrets = {{"t", "hush-hush-hush"}}};
  request.startup_script = "false";
  const Environment environment = engine.create(request);
  engine.run_until_idle();
  const Environment failed = engine.get(environment.uid);
  CHECK(failed.state == EnvironmentState::failed);
  CHECK(failed.error ==
        "provision vm fuse-web: startup script: exec exit 90: no such token: [REDACTED]");
  CHECK(engine.host.vms().empty());
  CHECK_FALSE(engine.service.get("fuse-web", false).has_value());
}

TEST_CASE("a startup script that takes too long is the request's fault") {
  Engine engine;
  engine.host.on_exec = [](const ExecRequest&) {
    return ExecResult{.exit_code = 124, .err = "timeout: gave up"};
  };
  CreateEnvironmentRequest request{.task_id = "slow"};
  request.startup_script = "sleep infinity";
  request.startup_script_timeout_seconds = 15;
  const Environment environment = engine.create(request);
  engine.run_until_idle();
  CHECK(engine.get(environment.uid).error ==
        "provision vm fuse-slow: startup script did not complete in time after 15s: timeout: gave "
        "up");
}

TEST_CASE("a task that is alive is refused a second time, and free after its end") {
  Engine engine;
  engine.create(job_request("one"));
  const auto second = engine.service.create(job_request("one"), {.respond_async = true});
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().code == ErrorCode::conflict);
  CHECK(second.error().message ==
        "task already assigned: task one already assigned to vm fuse-one");
  (void)engine.service.destroy("fuse-one");
  engine.run_until_idle();
  CHECK(engine.service.create(job_request("one"), {.respond_async = true}).has_value());
}

TEST_CASE("an environment that is destroyed while it is created leaves nothing behind") {
  Engine engine;
  const Environment environment = engine.create(job_request("gone"));
  REQUIRE(engine.worker->turn() == Worker::Turn::worked);
  REQUIRE(engine.host.vms().size() == 1);
  const auto waited = engine.service.destroy("fuse-gone");
  CHECK_FALSE(waited.has_value());  // the wait is 0 s here, and the worker is held
  engine.run_until_idle();
  CHECK(engine.host.vms().empty());
  CHECK(engine.get(environment.uid).state == EnvironmentState::destroyed);
  CHECK(engine.service.destroy("fuse-gone").error().code == ErrorCode::not_found);
}

TEST_CASE("a destroy that the agent refuses is tried again, and nothing is free before") {
  Engine engine;
  auto request = job_request("sticky");
  request.spec.cpus = 8;
  engine.create(request);
  engine.run_until_idle();
  int refusals = 3;
  engine.host.before = [&](const std::string& call) -> std::optional<Error> {
    if (call != "destroy_vm" || refusals == 0) return std::nullopt;
    --refusals;
    return Error{ErrorCode::internal, "qemu does not go away"};
  };
  (void)engine.service.destroy("fuse-sticky");
  engine.run_until_idle();
  CHECK(engine.get("fuse-sticky").state == EnvironmentState::destroying);
  CHECK_FALSE(engine.service.create(job_request("next"), {.respond_async = true}).has_value());
  engine.run_for(std::chrono::seconds(10));
  CHECK(refusals == 0);
  CHECK(engine.host.vms().empty());
  CHECK(engine.service.create(job_request("next"), {.respond_async = true}).has_value());
}

TEST_CASE("a VM that is still starting is given up once nobody wants it") {
  Engine engine;
  const Environment environment = engine.create(job_request("slow"));
  std::promise<void> starting;
  std::promise<void> unwanted;
  std::once_flag told;
  bool in_time = false;
  // The agent answers a create only when its guest is up, or when it is called off.
  engine.host.before = [&](const std::string& call) -> std::optional<Error> {
    if (call == "create_vm") {
      starting.set_value();
      in_time =
          unwanted.get_future().wait_for(std::chrono::seconds(20)) == std::future_status::ready;
      return Error{ErrorCode::unavailable, "the vm was destroyed while it was being created"};
    }
    if (call == "destroy_vm") std::call_once(told, [&] { unwanted.set_value(); });
    return std::nullopt;
  };
  auto worker = std::async(std::launch::async, [&] { return engine.run_until_idle(); });
  starting.get_future().wait();
  (void)engine.service.destroy("fuse-slow");
  worker.get();
  CHECK(in_time);
  engine.host.before = {};
  engine.run_until_idle();
  CHECK(engine.get(environment.uid).state == EnvironmentState::destroyed);
  CHECK(engine.host.made() == 0);
}

TEST_CASE("an agent that is away is waited for, but not for ever") {
  Engine engine;
  const Environment environment = engine.create(job_request("patient"));
  bool away = true;
  engine.host.before = [&](const std::string& call) -> std::optional<Error> {
    if (!away || call != "create_vm") return std::nullopt;
    return Error{ErrorCode::unreachable, "connection refused"};
  };
  engine.run_for(std::chrono::seconds(30));
  CHECK(engine.get("fuse-patient").state == EnvironmentState::provisioning);
  SECTION("it comes back") {
    away = false;
    engine.run_for(std::chrono::seconds(60));
    CHECK(engine.get("fuse-patient").state == EnvironmentState::running);
  }
  SECTION("it does not") {
    engine.run_for(std::chrono::seconds(20 * 60));
    const Environment failed = engine.get(environment.uid);
    CHECK(failed.state == EnvironmentState::failed);
    CHECK(failed.error == "provision vm fuse-patient: connection refused");
  }
  CHECK(engine.host.violations().empty());
}

TEST_CASE("a vm that dies while it is made ready is not waited for") {
  Engine engine;
  const Environment environment = engine.create(job_request("brief"));
  engine.worker->turn();
  engine.host.kill_vm(environment.uid, "kernel panic");
  engine.host.before = [](const std::string& call) -> std::optional<Error> {
    if (call != "upload") return std::nullopt;
    return Error{ErrorCode::unavailable, "the guest does not answer"};
  };
  engine.run_until_idle();
  CHECK(engine.get(environment.uid).state == EnvironmentState::failed);
  CHECK(engine.get(environment.uid).error == "provision vm fuse-brief: the vm ended: kernel panic");
}

TEST_CASE("a job whose vm dies is lost, and its environment says why") {
  Engine engine;
  const Environment environment = engine.create(job_request("crash"));
  engine.run_until_idle();
  engine.host.kill_vm(environment.uid, "qemu: killed by signal 9");
  engine.run_for(std::chrono::seconds(2));
  const Environment failed = engine.get(environment.uid);
  CHECK(failed.state == EnvironmentState::failed);
  CHECK(failed.error == "the vm ended: qemu: killed by signal 9");
  CHECK(failed.job->state == JobState::lost);
  CHECK(engine.host.vms().empty());
}

TEST_CASE("a look that is hurried finds a job's end before its time") {
  Engine engine;
  const Environment environment = engine.create(job_request("short"));
  engine.run_until_idle();
  engine.host.set_job(environment.uid,
                      {.state = JobState::exited, .phase = JobPhase::done, .exit_code = 4});
  CHECK(engine.run_until_idle() == 0);
  engine.worker->hurry();
  CHECK(engine.run_until_idle() > 0);
  CHECK(engine.get(environment.uid).job->exit_code == 4);
}

TEST_CASE("a job that ends leaves its environment running unless it is told otherwise") {
  Engine engine;
  const Environment environment = engine.create(job_request("kept"));
  engine.run_until_idle();
  engine.host.set_job(environment.uid,
                      {.state = JobState::exited, .phase = JobPhase::done, .exit_code = 0});
  engine.run_for(std::chrono::seconds(2));
  CHECK(engine.get("fuse-kept").state == EnvironmentState::running);
  CHECK(engine.get("fuse-kept").job->state == JobState::exited);
  (void)engine.service.destroy("fuse-kept");
  engine.run_until_idle();
  CHECK(engine.get(environment.uid).job->exit_code == 0);
}

TEST_CASE("what a destroy fetched of a job that ran is kept with the environment") {
  Engine engine;
  const Environment environment = engine.create(job_request("stopped"));
  engine.run_until_idle();
  (void)engine.service.destroy("fuse-stopped");
  engine.run_until_idle();
  const Environment ended = engine.get(environment.uid);
  CHECK(ended.job->state == JobState::exited);
  CHECK(ended.job->exit_code == 143);
}

TEST_CASE("gpus are bound by uuid and free again only after the end") {
  Engine engine;
  HostCapacity capacity{.cpus = 8, .ram_mb = 16'384, .storage_gb = 100, .vm_count = 16, .gpus = 2};
  capacity.gpu_devices = {{.uuid = "GPU-a", .model = "NVIDIA A100"},
                          {.uuid = "GPU-b", .model = "NVIDIA A100"}};
  engine.host.set_capacity(capacity);
  engine.poller.pass();
  auto request = job_request("g1");
  request.spec.gpus = 1;
  const Environment first = engine.create(request);
  request.task_id = "g2";
  const Environment second = engine.create(request);
  engine.run_until_idle();
  request.task_id = "g3";
  const auto third = engine.service.create(request, {.respond_async = true});
  REQUIRE_FALSE(third.has_value());
  CHECK(third.error().code == ErrorCode::unavailable);
  CHECK(third.error().details.at("reason") == "placement");
  const auto vms = engine.host.vms();
  std::set<std::string> bound;
  for (const auto& [uid, vm] : vms) {
    bound.insert(vm.request.gpu_device_uuids.begin(), vm.request.gpu_device_uuids.end());
  }
  CHECK(bound == std::set<std::string>{"GPU-a", "GPU-b"});
  (void)engine.service.destroy("fuse-g1");
  engine.run_until_idle();
  CHECK(engine.service.create(request, {.respond_async = true}).has_value());
  engine.run_until_idle();
  CHECK(engine.host.violations().empty());
}

}  // namespace
}  // namespace fuse
