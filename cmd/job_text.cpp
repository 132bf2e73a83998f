#include "cmd/job_text.h"

#include "base/clock.h"
#include "base/text.h"
#include "base/units.h"
#include "cmd/exit_codes.h"
#include "cmd/output.h"

namespace fuse::cmd {

namespace {

std::string duration_text(const JobStatus& job) {
  const auto start = parse_rfc3339(job.started_at);
  const auto end = parse_rfc3339(job.finished_at);
  if (!start || !end || *end < *start) return "";
  return cat(" after ", human_duration(*end - *start));
}

std::string code_text(const JobStatus& job) {
  std::string text = job.exit_code ? cat("exit ", *job.exit_code) : "no exit code";
  if (job.signal) text += cat(", by signal ", *job.signal);
  return text;
}

std::string failed_build_text(const JobStatus& job) {
  std::string step = cat("build step ", job.step);
  if (job.steps > 0) step += cat(" of ", job.steps);
  if (!job.step_name.empty()) step += cat(" (", printable(job.step_name), ")");
  return step;
}

}  // namespace

std::string end_text(const JobStatus& job, const std::string& why) {
  if (job.state == JobState::lost || job.reason == "lost") {
    return cat("lost: ", why.empty() ? "its VM went away before it ended" : printable(why));
  }
  const std::string after = duration_text(job);
  std::string where;
  if (job.phase == JobPhase::build && job.step > 0) where = cat(failed_build_text(job), " ");
  if (job.reason == "timeout") return cat(where, "reached its time limit", after);
  if (job.reason == "oom") return cat(where, "ran out of memory: ", code_text(job), after);
  if (job.reason == "stopped") return cat(where, "was stopped: ", code_text(job), after);
  if (!where.empty()) return cat(where, "failed: ", code_text(job), after);
  return cat(code_text(job), after);
}

std::string failure_hint(const Environment& environment, std::string_view reason) {
  // As agents put it.
  if (reason.find("bake and place a rootfs") != std::string_view::npos) {
    return cat("where the image is to be used: fuse image bake ", environment.spec.image);
  }
  return cat("what is known of it: fuse environment get --ended ", environment.id);
}

std::string short_text(const JobStatus& job) {
  if (job.state == JobState::lost) return "lost";
  if (job.state == JobState::exited) {
    if (job.reason == "timeout") return "time limit";
    if (job.reason == "oom") return "out of memory";
    return job.exit_code ? cat("exit ", *job.exit_code) : "ended";
  }
  if (job.state == JobState::pending) return "pending";
  if (job.phase == JobPhase::build) return cat("build ", job.step, "/", job.steps);
  return "running";
}

int exit_code_of(const JobStatus& job) {
  if (job.state != JobState::exited) return fuse_failed;
  if (job.reason == "timeout") return time_limit;
  return job.exit_code.value_or(fuse_failed);
}

}  // namespace fuse::cmd
