#include "orchestrator/job_events.h"

#include <algorithm>

namespace fuse {

namespace {

// Build steps that have begun, and those that are over.
struct Progress {
  std::int32_t begun = 0;
  std::int32_t over = 0;
  bool last_failed = false;
};

Progress progress_of(const JobStatus& job, std::int32_t steps) {
  if (job.state == JobState::pending) return {};
  if (job.phase != JobPhase::build) return {.begun = steps, .over = steps};
  const std::int32_t at = std::clamp(job.step, 0, steps);
  if (!is_over(job)) return {.begun = at, .over = std::max(0, at - 1)};
  return {.begun = at, .over = at, .last_failed = true};
}

EnvironmentEvent step_event(std::int32_t index, const std::vector<std::string>& names) {
  EnvironmentEvent event{.event = "step", .key = "build"};
  event.message = names[static_cast<std::size_t>(index) - 1];
  event.index = index;
  event.total = static_cast<std::int32_t>(names.size());
  return event;
}

EnvironmentEvent end_of_step(EnvironmentEvent step, bool failed, const JobStatus& job) {
  if (!failed) {
    step.exit_code = 0;
  } else if (job.exit_code) {
    step.exit_code = job.exit_code;
  } else {
    // Nobody knows how it would have ended.
    step.error = job.state == JobState::lost ? "lost" : "it has no exit code";
  }
  return step;
}

}  // namespace

std::vector<EnvironmentEvent> job_events(const JobStatus& before, const JobStatus& now,
                                         const std::vector<std::string>& step_names) {
  const auto steps = static_cast<std::int32_t>(step_names.size());
  const Progress was = progress_of(before, steps);
  const Progress is = progress_of(now, steps);
  std::vector<EnvironmentEvent> out;
  const bool moved = before.state != now.state || before.phase != now.phase;
  const auto tell_job = [&] { out.push_back({.event = "job", .job = now}); };
  // The start comes before the steps, the end after them.
  if (moved && !is_over(now) && before.state == JobState::pending) tell_job();
  for (std::int32_t i = was.over + 1; i <= is.begun; ++i) {
    if (i > was.begun) out.push_back(step_event(i, step_names));
    if (i > is.over) continue;
    out.push_back(end_of_step(step_event(i, step_names), is.last_failed && i == is.over, now));
  }
  if (moved && (is_over(now) || before.state != JobState::pending)) tell_job();
  return out;
}

JobStatus lost(JobStatus job) {
  job.state = JobState::lost;
  job.reason = "lost";
  return job;
}

}  // namespace fuse
