#include "orchestrator/job_events.h"

#include "tests/orchestrator/engine.h"

namespace fuse {
namespace {

using Lines = std::vector<std::string>;
const Lines two = {"deps", "data"};

JobStatus at(JobState state, JobPhase phase, std::int32_t step) {
  return {.state = state, .phase = phase, .step = step, .steps = 2};
}

TEST_CASE("nothing is told while only the log grows") {
  JobStatus before = at(JobState::running, JobPhase::build, 1);
  JobStatus now = before;
  now.log_bytes = 10;
  CHECK(job_events(before, now, two).empty());
}

TEST_CASE("build steps are told as they begin and end, also those that went by unseen") {
  const JobStatus pending;
  const JobStatus first = at(JobState::running, JobPhase::build, 1);
  const JobStatus second = at(JobState::running, JobPhase::build, 2);
  const JobStatus run = at(JobState::running, JobPhase::run, 2);
  CHECK(lines_of(job_events(pending, first, two)) == Lines{"job build running", "step build 1/2"});
  CHECK(lines_of(job_events(first, second, two)) == Lines{"step build 1/2 done", "step build 2/2"});
  CHECK(lines_of(job_events(second, run, two)) == Lines{"step build 2/2 done", "job run running"});
  CHECK(lines_of(job_events(pending, run, two)) == Lines{"job run running", "step build 1/2",
                                                         "step build 1/2 done", "step build 2/2",
                                                         "step build 2/2 done"});
  CHECK(job_events(pending, first, two)[1].message == "deps");
}

TEST_CASE("a build step that fails has the job's code, those before it 0") {
  JobStatus failed = at(JobState::exited, JobPhase::build, 2);
  failed.exit_code = 9;
  const auto events = job_events(at(JobState::running, JobPhase::build, 1), failed, two);
  CHECK(lines_of(events) == Lines{"step build 1/2 done", "step build 2/2", "step build 2/2 done",
                                  "job build exited 9"});
  CHECK(events[0].exit_code == 0);
  CHECK(events[2].exit_code == 9);
}

TEST_CASE("a build step that was lost with its VM has no exit code") {
  JobStatus gone = at(JobState::lost, JobPhase::build, 2);
  gone.reason = "lost";
  const auto events = job_events(at(JobState::running, JobPhase::build, 2), gone, two);
  REQUIRE(events.size() == 2);
  CHECK(events[0].key == "build");
  CHECK(events[0].index == 2);
  CHECK_FALSE(events[0].exit_code);
  CHECK(events[0].error == "lost");
  CHECK(events[1].job->state == JobState::lost);
}

TEST_CASE("no event of a job has a state of the environment") {
  JobStatus done = at(JobState::exited, JobPhase::done, 2);
  done.exit_code = 0;
  for (const EnvironmentEvent& event : job_events({}, done, two)) {
    CHECK_FALSE(event.state.has_value());
  }
  CHECK(lines_of(job_events({}, done, {})) == Lines{"job done exited 0"});
}

}  // namespace
}  // namespace fuse
