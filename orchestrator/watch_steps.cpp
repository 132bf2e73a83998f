#include <algorithm>

#include "base/text.h"
#include "orchestrator/job_events.h"
#include "orchestrator/steps.h"

namespace fuse {

namespace {

constexpr std::chrono::milliseconds soon{200};
constexpr std::chrono::milliseconds later{1000};
constexpr std::chrono::seconds young{20};

StepOutcome again(std::chrono::milliseconds delay) {
  return {.kind = StepOutcome::Kind::again, .delay = delay};
}

StepOutcome vm_ended(const std::string& why) {
  return {.kind = StepOutcome::Kind::failed,
          .error = {ErrorCode::unavailable, cat("the vm ended: ", why)}};
}

StepOutcome vm_is_gone(const StepInput& input) {
  return {.kind = StepOutcome::Kind::failed,
          .error = {ErrorCode::unavailable,
                    cat("host ", input.row.environment.host_id, " no longer has the vm")}};
}

// Nothing is known of the job; what is known of its VM?
StepOutcome without_job(const StepInput& input) {
  const auto vm = input.agent.vms.get_vm(input.row.environment.uid);
  if (!vm && vm.error().code == ErrorCode::not_found) return vm_is_gone(input);
  if (vm && !vm->alive) return vm_ended(vm->ended);
  return again(later);
}

StepOutcome after_job(const StepInput& input, const JobStatus& job) {
  if (job.state == JobState::lost) {
    const auto vm = input.agent.vms.get_vm(input.row.environment.uid);
    if (!vm && vm.error().code != ErrorCode::not_found) return again(later);
    if (!vm) return vm_is_gone(input);
    if (!vm->alive) return vm_ended(vm->ended);
  }
  const auto kind = input.row.on_exit == OnExit::destroy ? StepOutcome::Kind::take_down
                                                         : StepOutcome::Kind::settled;
  return {.kind = kind};
}

}  // namespace

StepOutcome run_watch_step(const StepInput& input) {
  const auto job = input.agent.jobs.job(input.row.environment.uid);
  if (!job) {
    return job.error().code == ErrorCode::not_found ? without_job(input) : again(later);
  }
  const bool over = is_over(*job);
  StepOutcome out = over ? after_job(input, *job) : again(later);
  if (!over && input.now - input.operation.step_started < young) out.delay = soon;
  const JobStatus before = input.row.environment.job.value_or(JobStatus());
  out.events = job_events(before, *job, input.row.step_names);
  if (!out.events.empty()) {
    out.change = [now = *job](EnvironmentRow& row) { row.environment.job = now; };
  }
  return out;
}

}  // namespace fuse
