#include <csignal>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tests/cmd/world.h"

namespace fuse::cmd {

namespace {

constexpr const char* fusefile =
    "version: 1\nname: train\nimage: micro\nbuild:\n  - pip install x\nrun: python train.py\n";

// A job that runs and ends with a code.
std::vector<EnvironmentEvent> story_of(const JobStatus& end) {
  return {state_event(EnvironmentState::provisioning),
          step_event("create_vm", "start the vm on host local"),
          step_event("create_vm", "start the vm on host local", 2900),
          state_event(EnvironmentState::running),
          job_event(running_job()),
          job_event(end),
          state_event(EnvironmentState::destroying),
          state_event(EnvironmentState::destroyed)};
}

struct JobWorld : World {
  JobWorld() {
    folder.write("Fusefile", fusefile);
    environments.environment.job = JobStatus{};
  }
};

bool says(const std::ostringstream& stream, std::string_view text) {
  return stream.str().find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("run hands on the job's output byte for byte and exits with its code") {
  JobWorld world;
  world.environments.log = std::string("epoch 1\r\n\0\xff\xfe no line end", 24);
  world.environments.story = story_of(ended_job(3));

  CHECK(world.fuse({"run"}) == 3);

  CHECK(world.out.str() == world.environments.log);
  REQUIRE(world.environments.created.size() == 1);
  const CreateEnvironmentRequest& sent = world.environments.created[0];
  CHECK(sent.task_id == "train");
  CHECK(sent.on_exit == OnExit::destroy);
  REQUIRE(sent.phases);
  CHECK(sent.phases->build.size() == 1);
  CHECK(says(world.err,
             "plan  train on this machine: 1 CPU (default), 1 GiB of memory (default), image "
             "micro\n      runs 1 build step, then: python train.py\n      the VM is removed "
             "when it ends\n"));
  CHECK(says(world.err, "  create vm      start the vm on host local"));
  CHECK(says(world.err, "2.9 s\n"));
  CHECK(says(world.err,
             "fuse-train: exit 3 after 12.0 s\n  its output again: fuse logs fuse-train\n"));
}

TEST_CASE("run says nothing but the job's output with --quiet") {
  JobWorld world;
  world.environments.log = "out\n";
  world.environments.story = story_of(ended_job(0));
  CHECK(world.fuse({"run", "-q"}) == 0);
  CHECK(world.out.str() == "out\n");
  CHECK(world.err.str().empty());
}

TEST_CASE("run with --keep leaves the VM and says what can be done with it") {
  JobWorld world;
  world.environments.story = {state_event(EnvironmentState::running), job_event(running_job()),
                              job_event(ended_job(0))};
  CHECK(world.fuse({"run", "--keep"}) == 0);
  CHECK(world.environments.created.at(0).on_exit == OnExit::keep);
  CHECK(says(world.err, "a shell there: fuse shell fuse-train   remove it: fuse rm fuse-train"));
}

TEST_CASE("each end of a job has its exit code") {
  JobStatus lost = ended_job(0);
  lost.state = JobState::lost;
  lost.exit_code.reset();
  JobStatus build = ended_job(2);
  build.phase = JobPhase::build;
  build.step = 1;
  build.steps = 1;
  build.step_name = "pip install x";
  for (const auto& [job, code, text] : std::vector<std::tuple<JobStatus, int, std::string>>{
           {ended_job(0), 0, "exit 0"},
           {ended_job(255), 255, "exit 255"},
           {ended_job(137, "oom"), 137, "ran out of memory: exit 137"},
           {ended_job(143, "timeout"), 124, "reached its time limit after 12.0 s"},
           {ended_job(143, "stopped"), 143, "was stopped: exit 143"},
           {build, 2, "build step 1 of 1 (pip install x) failed: exit 2"},
           {lost, 125, "lost: its VM went away before it ended"}}) {
    JobWorld world;
    world.environments.story = story_of(job);
    CHECK(world.fuse({"run"}) == code);
    CHECK(says(world.err, cat("fuse-train: ", text)));
  }
}

TEST_CASE("a lost job's line says what became of its VM") {
  JobStatus lost = ended_job(0);
  lost.state = JobState::lost;
  lost.exit_code.reset();
  const std::string why = "the vm ended: qemu was ended by signal 9";
  for (const char* command : {"run", "up"}) {
    JobWorld world;
    world.environments.story = {state_event(EnvironmentState::running), job_event(running_job()),
                                job_event(lost), state_event(EnvironmentState::failed, why)};
    CHECK(world.fuse({command}) != success);
    CHECK(says(world.err, why));
  }
}

TEST_CASE("what fails before there is a job is 125 for run, with the reason") {
  JobWorld world;
  world.environments.story = {
      state_event(EnvironmentState::provisioning),
      state_event(EnvironmentState::destroying, "provision vm fuse-train: no QEMU"),
      state_event(EnvironmentState::failed, "provision vm fuse-train: no QEMU")};
  CHECK(world.fuse({"run"}) == fuse_failed);
  CHECK(says(world.err, "error: fuse-train: provision vm fuse-train: no QEMU\n"));

  const std::string no_image =
      "provision vm fuse-train: base image 'micro' not found at /x/micro.qcow2; bake and place a "
      "rootfs there before use";
  for (const char* command : {"run", "up"}) {
    JobWorld unbaked;
    unbaked.environments.story = {state_event(EnvironmentState::failed, no_image)};
    CHECK(unbaked.fuse({command}) != success);
    CHECK(says(unbaked.err, "where the image is to be used: fuse image bake micro\n"));
  }

  JobWorld refused;
  refused.environments.create_error =
      Error{ErrorCode::unavailable, "no host has sufficient capacity", {{"reason", "placement"}}};
  CHECK(refused.fuse({"run"}) == fuse_failed);
  JobWorld unreadable;
  CHECK(unreadable.fuse({"run", "nowhere"}) == fuse_failed);
  JobWorld bad;
  bad.folder.write("Fusefile", "version: 3\n");
  CHECK(bad.fuse({"run"}) == fuse_failed);
  CHECK(bad.environments.created.empty());
  JobWorld empty;
  empty.folder.write("Fusefile", "version: 1\nname: train\n");
  CHECK(empty.fuse({"run"}) == fuse_failed);
  CHECK(says(empty.err, "error: Fusefile has neither run nor build: there is no job to run\n"));
}

TEST_CASE("a signal detaches from the job and says how to come back") {
  for (const auto& [number, code] :
       std::vector<std::pair<int, int>>{{SIGINT, 130}, {SIGTERM, 143}, {SIGHUP, 129}}) {
    JobWorld world;
    world.environments.log = "first\n";
    world.environments.log_never_ends = true;
    world.environments.story = story_of(ended_job(0));
    world.environments.on_log_shown = [&world, number = number] { world.signals.raise(number); };
    CHECK(world.fuse({"run"}) == code);
    CHECK(world.out.str() == "first\n");
    CHECK(world.environments.stopped.empty());
    CHECK(world.environments.destroyed.empty());
    CHECK(says(world.err, "detached: the job goes on.\n"));
    CHECK(says(world.err, "fuse logs -f fuse-train --since 6\n"));
    CHECK(says(world.err, "fuse stop fuse-train\n"));
  }
}

TEST_CASE("an output that nobody reads detaches from the job") {
  JobWorld world;
  world.environments.log = "first\n";
  world.environments.log_never_ends = true;
  world.environments.story = story_of(ended_job(0));
  world.out.setstate(std::ios::badbit);
  CHECK(world.fuse({"run"}) == output_closed);
  CHECK(world.environments.stopped.empty());
}

TEST_CASE("with --stop-on-signal a signal stops the job and its end is waited for") {
  JobWorld world;
  world.environments.log = "first\n";
  world.environments.story = story_of(ended_job(143, "stopped"));
  world.environments.on_log_shown = [&world] { world.signals.raise(SIGINT); };
  CHECK(world.fuse({"run", "--stop-on-signal"}) == 143);
  CHECK(world.environments.stopped == std::vector<std::string>{"01UID"});
}

TEST_CASE("secrets go into the request and nowhere else") {
  JobWorld world;
  world.folder.write("Fusefile", cat(fusefile, "secrets: [TOKEN]\n"));
  CHECK(world.fuse({"run"}) == fuse_failed);
  CHECK(world.environments.created.empty());
  CHECK(says(world.err, "error: missing required secrets: TOKEN\n"));

  JobWorld given;
  given.folder.write("Fusefile", cat(fusefile, "secrets: [TOKEN]\n"));
  given.variables["TOKEN"] = "s3cret-value";
  given.environments.story = story_of(ended_job(0));
  CHECK(given.fuse({"run", "--secret", "TOKEN", "--verbose"}) == 0);
  CHECK(given.environments.created.at(0).secrets.at("TOKEN") == "s3cret-value");
  CHECK_FALSE(says(given.err, "s3cret-value"));
  CHECK_FALSE(says(given.out, "s3cret-value"));

  JobWorld dry;
  dry.folder.write("Fusefile", cat(fusefile, "secrets: [TOKEN]\n"));
  CHECK(dry.fuse({"run", "--dry-run", "-o", "json", "--secret", "TOKEN=s3cret-value"}) == 0);
  CHECK(dry.environments.created.empty());
  CHECK(nlohmann::json::parse(dry.out.str())["required_secrets"] == nlohmann::json({"TOKEN"}));
  CHECK_FALSE(says(dry.out, "s3cret-value"));
}

TEST_CASE("up waits until the job runs, and says what comes next") {
  JobWorld world;
  world.environments.story = {state_event(EnvironmentState::running), job_event(running_job())};
  CHECK(world.fuse({"up"}) == success);
  CHECK(world.environments.created.at(0).on_exit == OnExit::keep);
  CHECK(says(world.out, "fuse-train: running on local\n"));
  CHECK(says(world.out, "  output     fuse logs -f fuse-train\n"));
  CHECK(world.out.str().ends_with("  remove it  fuse rm fuse-train\n"));
}

TEST_CASE("up as JSON is the environment") {
  JobWorld world;
  world.environments.story = {state_event(EnvironmentState::running), job_event(ended_job(0))};
  CHECK(world.fuse({"up", "-o", "json"}) == success);
  const auto json = nlohmann::json::parse(world.out.str());
  CHECK(json["id"] == "fuse-train");
  CHECK(json["state"] == "running");
  CHECK(json["job"]["exit_code"] == 0);
}

TEST_CASE("up with a build that fails is 1 and shows the last of its output") {
  JobWorld world;
  JobStatus job = ended_job(3);
  job.phase = JobPhase::build;
  job.step = 1;
  job.steps = 1;
  world.environments.story = {state_event(EnvironmentState::running), job_event(job)};
  CHECK(world.fuse({"up"}) == failed);
  CHECK(says(world.out, "its job ended: build step 1 of 1 failed: exit 3 after 12.0 s"));
  REQUIRE(world.environments.logs_asked.size() == 1);
  CHECK(world.environments.logs_asked[0].tail == 20);
}

TEST_CASE("up has an exit code for each kind of refusal") {
  for (const auto& [error, code] : std::vector<std::pair<Error, int>>{
           {{ErrorCode::unavailable, "no host", {{"reason", "placement"}}}, no_placement},
           {{ErrorCode::conflict, "task already assigned"}, in_conflict},
           {{ErrorCode::unreachable, "cannot reach it"}, not_reached},
           {{ErrorCode::invalid_argument, "bad"}, failed}}) {
    JobWorld world;
    world.environments.create_error = error;
    CHECK(world.fuse({"up"}) == code);
    CHECK(says(world.err, cat("error: ", error.message, "\n")));
  }
  JobWorld conflict;
  conflict.environments.create_error = Error{ErrorCode::conflict, "task already assigned"};
  CHECK(conflict.fuse({"up"}) == in_conflict);
  CHECK(says(conflict.err, "fuse logs -f fuse-train"));
  JobWorld unreadable;
  CHECK(unreadable.fuse({"up", "nowhere"}) == wrong_usage);
}

TEST_CASE("up does not wait with --no-wait") {
  JobWorld world;
  CHECK(world.fuse({"up", "--no-wait"}) == success);
  CHECK(says(world.out, "fuse-train: provisioning on local\n"));
}

TEST_CASE("up that is interrupted leaves the environment and says so") {
  JobWorld world;
  world.environments.story = {state_event(EnvironmentState::provisioning)};
  world.environments.on_created = [&world] { world.signals.raise(SIGINT); };
  CHECK(world.fuse({"up"}) == interrupted);
  CHECK(world.environments.destroyed.empty());
  CHECK(says(world.err, "detached: fuse-train goes on.\n"));
}

TEST_CASE("logs shows what was asked for, and its job's code when asked") {
  World world;
  world.environments.log = "0123456789";
  world.environments.environment.job = ended_job(9);
  CHECK(world.fuse({"logs", "fuse-train"}) == success);
  CHECK(world.fuse({"logs", "fuse-train", "--since", "7"}) == success);
  CHECK(world.fuse({"logs", "--exit-code", "fuse-train", "--tail", "3"}) == 9);
  CHECK(world.out.str() ==
        "0123456789"
        "789"
        "0123456789");
  REQUIRE(world.environments.logs_asked.size() == 3);
  CHECK(world.environments.logs_asked[1].offset == 7);
  CHECK(world.environments.logs_asked[2].tail == 3);
  CHECK(world.fuse({"logs", "fuse-other"}) == failed);
  CHECK(world.fuse({"logs", "--exit-code", "fuse-other"}) == fuse_failed);
  CHECK(world.fuse({"logs", "fuse-train", "--since", "1", "--tail", "1"}) == wrong_usage);
}

TEST_CASE("logs says what of the output is not kept any more") {
  World world;
  world.environments.log = "0123456789";
  world.environments.environment.job = ended_job(0);
  world.environments.environment.job->log_bytes = 30;
  CHECK(world.fuse({"logs", "fuse-train", "--since", "5"}) == success);
  CHECK(world.out.str() == "56789");
  CHECK(world.err.str() == "bytes 10 to 30 of the output of fuse-train are not kept any more\n");
}

TEST_CASE("what is no number, no state or no name is refused by name") {
  World world;
  const auto refused = [&world](const std::vector<std::string>& words) {
    world.err.str("");
    CHECK(world.fuse(words) == wrong_usage);
    return world.err.str().substr(0, world.err.str().find('\n'));
  };
  CHECK(refused({"logs", "fuse-train", "--tail", "-1"}) ==
        "error: --tail: must be a whole number, 0 or more, got \"-1\"");
  CHECK(refused({"logs", "fuse-train", "--tail=many"}) ==
        "error: --tail: must be a whole number, 0 or more, got \"many\"");
  CHECK(refused({"logs", "fuse-train", "--since", "-5"}) ==
        "error: --since: must be a whole number, 0 or more, got \"-5\"");
  CHECK(refused({"ps", "--limit", "-5"}) ==
        "error: --limit: must be a whole number, 1 or more, got \"-5\"");
  CHECK(refused({"ps", "--limit", "0"}) ==
        "error: --limit: must be a whole number, 1 or more, got \"0\"");
  CHECK(refused({"ps", "--state", "zzz"}) ==
        "error: --state: must be one of provisioning, running, draining, destroying, destroyed, "
        "failed, got \"zzz\"");
  CHECK(refused({"environment", "list", "--state", "runing"})
            .ends_with("got \"runing\", did you mean \"running\"?"));
  CHECK(refused({"logs", ""}) == "error: ID: an empty id names no environment");
  CHECK(refused({"rm", "--yes", "fuse-a", " "}) == "error: ID: an empty id names no environment");
  CHECK(refused({"stop", ""}) == "error: ID: an empty id names no environment");
  CHECK(world.environments.listed.empty());
  CHECK(world.environments.destroyed.empty());
}

TEST_CASE("a job that has not ended has no exit code yet") {
  World world;
  world.environments.environment.state = EnvironmentState::running;
  world.environments.environment.job = running_job();
  CHECK(world.fuse({"logs", "--exit-code", "fuse-train"}) == fuse_failed);
  CHECK(says(world.err, "has not ended, so it has no exit code"));
}

TEST_CASE("interrupting logs says where to go on") {
  World world;
  world.environments.log = "0123456789";
  world.environments.log_never_ends = true;
  world.environments.on_log_shown = [&world] { world.signals.raise(SIGINT); };
  CHECK(world.fuse({"logs", "-f", "fuse-train", "--since", "4"}) == interrupted);
  CHECK(world.out.str() == "456789");
  CHECK(says(world.err, "fuse logs -f fuse-train --since 10"));
}

TEST_CASE("stop asks for the job's end and says how to see it") {
  World world;
  CHECK(world.fuse({"stop", "fuse-train"}) == success);
  CHECK(world.environments.stopped == std::vector<std::string>{"fuse-train"});
  CHECK(world.out.str().empty());
  CHECK(says(world.err, "fuse logs -f --exit-code fuse-train"));
}

}  // namespace fuse::cmd
