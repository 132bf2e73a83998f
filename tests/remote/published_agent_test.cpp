#include "tests/fakes/published_agent.h"

#include <nlohmann/json.hpp>
#include <thread>

#include "base/ids.h"
#include "base/text.h"
#include "net/attach_frames.h"
#include "remote/remote_host_agent.h"
#include "tests/base/folder.h"
#include "tests/catch.h"
#include "tests/fakes/handler_http_client.h"

namespace fuse {
namespace {

template <class T>
T value(Result<T> result) {
  if (!result) FAIL(result.error().message);
  return *std::move(result);
}

void succeed(const Result<void>& result) {
  if (!result) FAIL(result.error().message);
}

// An agent of the published kind with one VM, and our client of it.
struct PublishedHost {
  Folder folder{};
  SystemClock clock{};
  PublishedAgent agent{folder.path()};
  RemoteHostAgent remote = make_remote();
  HostAgent host = remote.interfaces();
  std::string uid = new_ulid(clock.wall());

  RemoteHostAgent make_remote() {
    return RemoteHostAgent(make_handler_client(agent.handler()), clock,
                           {.job_folder = (folder.path() / "job").native()});
  }
  PublishedHost() { value(host.vms.create_vm({.name = "fuse-train", .uid = uid})); }
  PublishedHost(const PublishedHost&) = delete;
  PublishedHost& operator=(const PublishedHost&) = delete;

  [[nodiscard]] std::string vm_id() const { return cat("fuse-train-", lowercase(uid)); }
  JobStatus await_end() {
    for (;;) {
      JobStatus status = value(host.jobs.job(uid));
      if (is_over(status)) return status;
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  // Until the file `name` is in the folder.
  void await_file(const std::string& name) const {
    while (!fs::exists(folder.path() / name)) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  std::string whole_log(const LogQuery& query = {}) {
    std::string out;
    value(
        host.jobs.logs(uid, query, [&](std::string_view bytes) { return out += bytes, true; }, {}));
    return out;
  }
};

bool leads_nowhere(const std::string& line) {
  return line.find("/job") != std::string::npos || line.find("/logs") != std::string::npos;
}

}  // namespace

TEST_CASE("an agent that knows no uids has them in the names of its VMs") {
  PublishedHost world;
  const VmInfo vm = value(world.host.vms.get_vm(world.uid));
  CHECK(vm.vm_id == world.vm_id());
  CHECK(vm.uid == world.uid);
  CHECK(vm.url == "10.0.0.7:19651");
  CHECK(vm.alive);
  const auto listed = value(world.host.vms.list_vms("fuse-"));
  REQUIRE(listed.size() == 1);
  CHECK(listed[0].uid == world.uid);
  CHECK(value(world.host.vms.list_vms("other")).empty());

  // What has no number is left out, and nothing is sent that it does not know.
  const auto sent = nlohmann::json::parse(world.agent.creates().at(0));
  CHECK(sent ==
        nlohmann::json({{"name", cat("fuse-train-", lowercase(world.uid))}, {"region", ""}}));

  // Another orchestrator process, or this one after a restart, finds it again.
  RemoteHostAgent later = world.make_remote();
  CHECK(value(later.interfaces().vms.get_vm(world.uid)).vm_id == world.vm_id());
  CHECK(later.interfaces().vms.get_vm(new_ulid({})).error().code == ErrorCode::not_found);

  succeed(later.interfaces().vms.destroy_vm(world.uid));
  CHECK(world.host.vms.list_vms("").value().empty());
  CHECK(world.make_remote().interfaces().vms.destroy_vm(world.uid).error().message ==
        "vm not found");
}

TEST_CASE("a create whose answer was lost is the same VM when it is tried again") {
  PublishedHost world;
  const std::string uid = new_ulid({});
  world.agent.lose_next_create = true;
  const CreateVmRequest request{.name = "fuse-b", .uid = uid, .idempotency_key = "op-1"};
  CHECK(world.host.vms.create_vm(request).error().code == ErrorCode::unavailable);
  CHECK(value(world.host.vms.create_vm(request)).uid == uid);
  CHECK(value(world.host.vms.list_vms("fuse-b")).size() == 1);
}

TEST_CASE("sizes, kinds and devices are sent as they are given") {
  PublishedHost world;
  value(world.host.vms.create_vm({.name = "g",
                                  .cpus = 2,
                                  .memory_mb = 512,
                                  .image = "cuda",
                                  .gpus = 1,
                                  .gpu_kind = "a100-sxm4-40gb",
                                  .gpu_profile = "1g.5gb",
                                  .mig_instance_uuids = {"MIG-1"}}));
  CHECK(nlohmann::json::parse(world.agent.creates().back()) ==
        nlohmann::json({{"name", "g"},
                        {"cpus", 2},
                        {"memory_mb", 512},
                        {"region", ""},
                        {"image", "cuda"},
                        {"gpus", 1},
                        {"gpu_kind", "a100-sxm4-40gb"},
                        {"gpu_profile", "1g.5gb"},
                        {"mig_instance_uuids", {"MIG-1"}}}));
}

TEST_CASE("exec, upload with a mode, attach and start-agent work by the published wire") {
  PublishedHost world;
  const ExecResult done =
      value(world.host.guests.exec(world.uid, {.cmd = {"sh", "-c", "printf '\\377'; exit 3"}}));
  CHECK(done.exit_code == 3);
  CHECK(done.out == "\xff");
  const std::string file = (world.folder.path() / "a/b").native();
  succeed(world.host.guests.upload(world.uid, {.path = file, .bytes = "x", .mode = 0751}));
  CHECK(fs::status(file).permissions() == static_cast<fs::perms>(0751));

  const auto session = value(world.host.guests.attach(world.uid, {.cmd = {"sh"}}));
  CHECK((*value(session->read())).payload == "hello\n");
  CHECK(parse_exit((*value(session->read())).payload) == 7);
  CHECK(world.host.guests.attach(world.uid, {.cmd = {"sh"}, .tty = false}).error().message ==
        "attach requires tty=1; use /exec for non-interactive commands");

  CHECK(value(world.host.guests.start_agent(world.uid, {})).empty());
  world.agent.surfd = true;
  CHECK(value(world.host.guests.start_agent(world.uid, {})).empty());
}

TEST_CASE("a job runs in steps and to its end on an agent without job routes") {
  PublishedHost world;
  const std::string folder = world.folder.path().native();
  JobSpec job{.steps = {{.name = "make\nit", .script = "echo \"building $WORD\"; echo err >&2"},
                        {.name = "second", .script = "pwd", .workdir = folder}},
              .script = "echo running; touch here; while [ ! -e go ]; do sleep 0.05; done; exit 5",
              .env = {{"WORD", "it's $HOME\n"}},
              .workdir = folder};
  CHECK(world.host.jobs.job(world.uid).error().code == ErrorCode::not_found);
  CHECK(world.host.jobs.stop_job(world.uid).error().code == ErrorCode::not_found);
  succeed(world.host.jobs.start_job(world.uid, job));
  world.await_file("here");

  const JobStatus running = value(world.host.jobs.job(world.uid));
  CHECK(running.state == JobState::running);
  CHECK(running.phase == JobPhase::run);
  CHECK(running.steps == 2);
  CHECK(running.step == 2);
  CHECK(parse_rfc3339(running.started_at).has_value());
  CHECK(world.host.jobs.start_job(world.uid, job).error().code == ErrorCode::conflict);

  std::ignore = PosixHost().write_file(world.folder.path() / "go", "");
  const std::string expected = cat("building it's $HOME\n\nerr\n", folder, "\nrunning\n");
  CHECK(world.whole_log({.follow = true}) == expected);
  const JobStatus ended = world.await_end();
  CHECK(ended.state == JobState::exited);
  CHECK(ended.exit_code == 5);
  CHECK(ended.reason == "exited");
  CHECK(ended.phase == JobPhase::done);
  CHECK(parse_rfc3339(ended.finished_at).has_value());
  CHECK(ended.log_bytes == expected.size());
  CHECK(world.whole_log({.offset = 9}) == expected.substr(9));
  CHECK(world.whole_log({.offset = 1000}).empty());
  CHECK(world.whole_log({.tail = 1}) == "running\n");
  CHECK(world.whole_log({.tail = 100}) == expected);

  // Its result outlives the VM here, its log does not.
  succeed(world.host.vms.destroy_vm(world.uid));
  CHECK(value(world.host.jobs.job(world.uid)).exit_code == 5);
  const auto gone = world.host.jobs.logs(world.uid, {}, [](std::string_view) { return true; }, {});
  REQUIRE_FALSE(gone);
  CHECK(gone.error().message ==
        "no live log on this host: its agent keeps none, and the vm is gone");
  // Nothing but the published routes was asked for.
  const auto lines = world.agent.lines();
  CHECK(std::ranges::none_of(lines, leads_nowhere));
}

TEST_CASE("a build step that fails is the end of such a job") {
  PublishedHost world;
  succeed(world.host.jobs.start_job(
      world.uid, {.steps = {{.name = "ok", .script = "true"}, {.name = "bad", .script = "exit 9"}},
                  .script = "echo never"}));
  const JobStatus ended = world.await_end();
  CHECK(ended.exit_code == 9);
  CHECK(ended.phase == JobPhase::build);
  CHECK(ended.step == 2);
  CHECK(ended.step_name == "bad");
  CHECK(ended.log_bytes == 0);
}

TEST_CASE("such a job is stopped with what it started, and its time limit holds") {
  PublishedHost world;
  SECTION("stopped") {
    succeed(world.host.jobs.start_job(
        world.uid, {.script = "touch here; sleep 600 & wait", .workdir = world.folder.path()}));
    world.await_file("here");
    succeed(world.host.jobs.stop_job(world.uid));
    const JobStatus ended = world.await_end();
    CHECK(ended.reason == "stopped");
    CHECK(ended.exit_code == 143);
    CHECK(ended.signal == 15);
    succeed(world.host.jobs.stop_job(world.uid));
  }
  SECTION("killed after its grace") {
    succeed(world.host.jobs.start_job(world.uid,
                                      {.script = "trap '' TERM; touch here; sleep 600; sleep 600",
                                       .workdir = world.folder.path(),
                                       .grace_seconds = 1}));
    world.await_file("here");
    succeed(world.host.jobs.stop_job(world.uid));
    const JobStatus ended = world.await_end();
    CHECK(ended.reason == "stopped");
    CHECK(ended.exit_code == 137);
  }
  SECTION("out of time") {
    succeed(world.host.jobs.start_job(world.uid, {.script = "sleep 600", .timeout_seconds = 1}));
    const JobStatus ended = world.await_end();
    CHECK(ended.reason == "timeout");
    CHECK(ended.exit_code == 143);
  }
}

TEST_CASE("such a job whose watcher is gone without a result is lost") {
  PublishedHost world;
  succeed(world.host.jobs.start_job(
      world.uid, {.script = "touch here; sleep 600", .workdir = world.folder.path()}));
  world.await_file("here");
  const std::string job = (world.folder.path() / "job").native();
  value(world.host.guests.exec(
      world.uid,
      {.cmd = {"sh", "-c", cat("kill -9 $(cat ", job, "/watcher) -$(cat ", job, "/pid)")}}));
  const JobStatus ended = world.await_end();
  CHECK(ended.state == JobState::lost);
  CHECK(ended.reason == "lost");
  CHECK_FALSE(ended.exit_code);
}

}  // namespace fuse
