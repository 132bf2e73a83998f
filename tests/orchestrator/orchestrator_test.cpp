#include "orchestrator/orchestrator.h"

#include <filesystem>
#include <thread>

#include "base/ids.h"
#include "base/text.h"
#include "tests/orchestrator/engine.h"

namespace fuse {
namespace {

struct TempDir {
  fs::path path = fs::temp_directory_path() / cat("fuse-orchestrator-", random_hex(8));
  TempDir() { fs::create_directories(path); }
  ~TempDir() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
};

struct World {
  TempDir dir{};
  SystemClock clock{};
  NullLog log{};
  FakeHostAgent host{};

  std::unique_ptr<Orchestrator> open() {
    auto orchestrator = must(Orchestrator::open(
        {.database = dir.path / "fuse.db", .key = test_key, .workers = 2}, clock, log));
    must(orchestrator->attach_local_host({}, host.agent()));
    return orchestrator;
  }
};

// Follows an environment to its end.
EnvironmentState last_state(EnvironmentApi& api, const std::string& uid) {
  EnvironmentState state = EnvironmentState::provisioning;
  must(api.events(uid, {},
                  [&](const EnvironmentEvent& event) {
                    if (event.state) state = *event.state;
                    return true;
                  },
                  {}));
  return state;
}

TEST_CASE("what was answered before the end of a process is done by the next one") {
  World world;
  auto request = job_request("carried");
  request.on_exit = OnExit::destroy;
  std::string uid;
  std::string cluster;
  {
    const auto first = world.open();  // never started: it dies before it did anything
    uid = must(first->environments().create(request, {.respond_async = true})).uid;
    cluster = first->cluster();
  }
  world.host.on_job = [](const JobSpec&) {
    return JobStatus{.state = JobState::exited, .phase = JobPhase::done, .exit_code = 4};
  };
  const auto second = world.open();
  CHECK(second->cluster() == cluster);
  second->start();
  CHECK(last_state(second->environments(), uid) == EnvironmentState::destroyed);
  CHECK(must(second->environments().get(uid, true)).job->exit_code == 4);
  CHECK(world.host.made() == 1);
  CHECK(world.host.violations().empty());
}

TEST_CASE("a job that runs when a process ends is followed by the next one") {
  World world;
  auto request = job_request("long");
  request.settle_seconds = 0;
  request.on_exit = OnExit::destroy;
  Environment made;
  {
    const auto first = world.open();
    first->start();
    made = must(first->environments().create(request, {}));
    first->stop();
  }
  CHECK(made.state == EnvironmentState::running);
  CHECK(world.host.vms().size() == 1);
  const auto second = world.open();
  second->start();
  world.host.set_job(made.uid,
                     {.state = JobState::exited, .phase = JobPhase::done, .exit_code = 0});
  CHECK(last_state(second->environments(), made.uid) == EnvironmentState::destroyed);
  CHECK(world.host.made() == 1);
}

TEST_CASE("a host that is entered again keeps its cordon and what is bound on it") {
  World world;
  HostCapacity capacity{.cpus = 4, .ram_mb = 4096, .storage_gb = 50, .gpus = 1};
  capacity.gpu_devices = {{.uuid = "GPU-1", .model = "A100"}};
  world.host.set_capacity(capacity);
  auto request = job_request("holder");
  request.spec.gpus = 1;
  (void)must(world.open()->environments().create(request, {.respond_async = true}));
  const auto again = world.open();
  request.task_id = "second";
  const auto refused = again->environments().create(request, {.respond_async = true});
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.error().code == ErrorCode::unavailable);
}

TEST_CASE("a stop ends whoever waits") {
  World world;
  const auto orchestrator = world.open();  // nobody works on anything
  std::optional<Result<Environment>> made;
  std::thread waiting([&] { made = orchestrator->environments().create(job_request("w"), {}); });
  while (must(orchestrator->environments().list({})).environments.empty()) {
    std::this_thread::yield();
  }
  orchestrator->stop();
  waiting.join();
  CHECK(must(*made).state == EnvironmentState::provisioning);
}

TEST_CASE("a database is not opened with a key of the wrong size") {
  World world;
  const auto opened = Orchestrator::open({.key = "short"}, world.clock, world.log);
  REQUIRE_FALSE(opened.has_value());
  CHECK(opened.error().message == "the key of the database must be 32 bytes");
}

}  // namespace
}  // namespace fuse
