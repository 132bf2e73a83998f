#include "orchestrator/reconciler.h"

#include "base/text.h"
#include "tests/orchestrator/engine.h"

namespace fuse {
namespace {

CreateEnvironmentRequest plain(const std::string& task) {
  return {.task_id = task};
}

TEST_CASE("an environment whose vm is gone fails with the reason, and its task is free") {
  Engine engine;
  const Environment environment = engine.create(plain("t"));
  engine.run_until_idle();
  SECTION("the agent says it died") {
    engine.host.kill_vm(environment.uid, "out of memory");
    engine.reconciler.pass();
    engine.run_until_idle();
    CHECK(engine.get(environment.uid).error == "the vm ended: out of memory");
  }
  SECTION("the agent no longer knows it") {
    (void)engine.host.destroy_vm(environment.uid);
    engine.reconciler.pass();
    engine.run_until_idle();
    CHECK(engine.get(environment.uid).error == "host local no longer has the vm");
  }
  CHECK(engine.get(environment.uid).state == EnvironmentState::failed);
  CHECK(engine.service.create(plain("t"), {.respond_async = true}).has_value());
}

TEST_CASE("a vm that comes up while the agent is asked is not taken for a lost one") {
  Engine engine;
  bool created = false;
  engine.host.before = [&](const std::string& call) -> std::optional<Error> {
    if (call != "list_vms" || created) return std::nullopt;
    created = true;
    engine.create(plain("late"));
    engine.run_until_idle();
    return std::nullopt;
  };
  engine.reconciler.pass();
  engine.run_until_idle();
  CHECK(engine.get("fuse-late").state == EnvironmentState::running);
}

TEST_CASE("an agent that cannot be asked says nothing about its vms") {
  Engine engine;
  engine.create(plain("t"));
  engine.run_until_idle();
  engine.host.before = [](const std::string&) -> std::optional<Error> {
    return Error{ErrorCode::unreachable, "no route to host"};
  };
  engine.reconciler.pass();
  engine.reconciler.pass();
  engine.run_until_idle();
  CHECK(engine.get("fuse-t").state == EnvironmentState::running);
}

TEST_CASE("a vm of ours without an environment is destroyed after its grace, another's never") {
  Engine engine;
  engine.host.plant({.name = "stray", .uid = "01STRAY", .cluster = engine.store->cluster()});
  engine.host.plant({.name = "other", .uid = "01OTHER", .cluster = "somebody else"});
  engine.host.plant({.name = "nobody", .uid = "01NOBODY"});
  engine.reconciler.pass();
  engine.clock.move(std::chrono::seconds(299));
  engine.reconciler.pass();
  CHECK(engine.host.vms().size() == 3);
  engine.clock.move(std::chrono::seconds(2));
  engine.reconciler.pass();
  CHECK(engine.host.vms().size() == 2);
  CHECK(engine.host.vms().count("01STRAY") == 0);
}

TEST_CASE("on a host that is ours alone a vm of another database is destroyed at once") {
  Engine engine;
  engine.hosts.attach("local", engine.host.agent(), HostDirectory::Users::we_alone);
  engine.host.plant({.name = "ours", .uid = "01OURS", .cluster = engine.store->cluster()});
  engine.host.plant({.name = "older", .uid = "01OLDER", .cluster = "a database that is gone"});
  engine.reconciler.pass();
  CHECK(engine.host.vms().size() == 1);
  CHECK(engine.host.vms().count("01OURS") == 1);
}

TEST_CASE("max_runtime ends an environment a minute later, at the second look; 0 never") {
  Engine engine;
  auto request = plain("limited");
  request.spec.max_runtime_seconds = 3600;
  const Environment environment = engine.create(request);
  engine.create(plain("free"));
  engine.run_until_idle();
  engine.clock.move(std::chrono::seconds(3660));
  engine.reconciler.pass();
  engine.reconciler.pass();
  CHECK(engine.get("fuse-limited").state == EnvironmentState::running);
  engine.clock.move(std::chrono::seconds(1));
  engine.reconciler.pass();
  CHECK(engine.get("fuse-limited").state == EnvironmentState::running);
  engine.reconciler.pass();
  engine.run_until_idle();
  CHECK(engine.get(environment.uid).state == EnvironmentState::failed);
  CHECK(engine.get(environment.uid).error == "max_runtime of 1h0m0s is over");
  engine.clock.move(std::chrono::hours(1000));
  engine.reconciler.pass();
  engine.reconciler.pass();
  CHECK(engine.get("fuse-free").state == EnvironmentState::running);
}

TEST_CASE("idle is who runs no job and is used by nobody") {
  Engine engine;
  auto request = plain("idle");
  request.spec.idle_timeout_seconds = 60;
  const Environment idle = engine.create(request);
  request = job_request("busy");
  request.spec.idle_timeout_seconds = 60;
  engine.create(request);
  request = plain("attached");
  request.spec.idle_timeout_seconds = 60;
  engine.create(request);
  engine.run_until_idle();
  const auto session = must(engine.service.attach("fuse-attached", {}));
  engine.clock.move(std::chrono::seconds(59));
  must(engine.service.exec("fuse-idle", {.cmd = {"true"}}));
  engine.clock.move(std::chrono::seconds(59));
  for (int i = 0; i < 2; ++i) engine.reconciler.pass();
  CHECK(engine.get("fuse-idle").state == EnvironmentState::running);
  engine.clock.move(std::chrono::seconds(1));
  for (int i = 0; i < 2; ++i) engine.reconciler.pass();
  engine.run_until_idle();
  CHECK(engine.get(idle.uid).state == EnvironmentState::failed);
  CHECK(engine.get(idle.uid).error == "idle for longer than idle_timeout (1m0s)");
  CHECK(engine.get("fuse-busy").state == EnvironmentState::running);
  CHECK(engine.get("fuse-attached").state == EnvironmentState::running);
}

TEST_CASE("between passes only those are asked that are not known to be healthy") {
  Engine engine;
  auto request = plain("probed");
  request.healthcheck = HealthcheckSpec{.http = HealthcheckHttp{.port = 80, .path = "/"}};
  engine.create(request);
  engine.create(plain("other"));
  engine.run_until_idle();
  int asked = 0;
  std::string state = "starting";
  engine.host.on_exec = [&](const ExecRequest&) {
    ++asked;
    return ExecResult{.out = cat(R"({"state":")", state, R"(","since":"2026-11-30T10:00:00Z"})")};
  };
  engine.reconciler.look_for_health();
  CHECK(engine.get("fuse-probed").health->state == "starting");
  state = "passing";
  engine.reconciler.look_for_health();
  CHECK(engine.get("fuse-probed").health->state == "passing");
  engine.reconciler.look_for_health();
  CHECK(asked == 2);
  CHECK_FALSE(engine.get("fuse-other").health);
}

TEST_CASE("the verdict of a healthcheck is in the environment, and a broken one changes nothing") {
  Engine engine;
  auto request = plain("probed");
  request.healthcheck = HealthcheckSpec{.http = HealthcheckHttp{.port = 80, .path = "/"}};
  engine.create(request);
  engine.run_until_idle();
  std::string file =
      R"({"state":"failing","since":"2026-11-30T00:00:00Z","failures":3,"message":"no"})";
  int code = 0;
  engine.host.on_exec = [&](const ExecRequest& exec) {
    CHECK(exec.cmd == std::vector<std::string>{"cat", "/fuse/health.json"});
    CHECK(exec.timeout_ms == 5000);
    return ExecResult{.exit_code = code, .out = file};
  };
  engine.reconciler.pass();
  CHECK(engine.get("fuse-probed").health->state == "failing");
  CHECK(engine.get("fuse-probed").health->failures == 3);
  file = "{";
  engine.reconciler.pass();
  file = R"({"state":"passing"})";
  code = 1;
  engine.reconciler.pass();
  CHECK(engine.get("fuse-probed").health->state == "failing");
  code = 0;
  engine.reconciler.pass();
  CHECK(engine.get("fuse-probed").health->state == "passing");
}

TEST_CASE("an environment that has ended is kept for the retention, then forgotten") {
  Engine engine;
  const Environment environment = engine.create(plain("old"));
  engine.run_until_idle();
  (void)engine.service.destroy("fuse-old");
  engine.run_until_idle();
  engine.clock.move(std::chrono::hours(24 * 7) - std::chrono::seconds(1));
  engine.reconciler.pass();
  CHECK(engine.service.get(environment.uid, true).has_value());
  engine.clock.move(std::chrono::seconds(2));
  engine.reconciler.pass();
  CHECK(engine.service.get(environment.uid, true).error().code == ErrorCode::not_found);
  CHECK(engine.events(environment.uid).empty());
}

TEST_CASE("devices that appear on a host can be placed on without entering it again") {
  Engine engine;
  auto request = job_request("g");
  request.spec.gpus = 1;
  CHECK_FALSE(engine.service.create(request, {.respond_async = true}).has_value());
  HostCapacity capacity{.cpus = 4, .ram_mb = 4096, .storage_gb = 50, .gpus = 1};
  capacity.gpu_devices = {{.uuid = "GPU-1", .model = "A100"}};
  engine.host.set_capacity(capacity);
  engine.poller.pass();
  CHECK(engine.service.create(request, {.respond_async = true}).has_value());
}

}  // namespace
}  // namespace fuse
