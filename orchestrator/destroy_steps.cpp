#include "orchestrator/job_events.h"
#include "orchestrator/steps.h"

namespace fuse {

namespace {

StepOutcome retry(Error error) {
  return {.kind = StepOutcome::Kind::retry, .error = std::move(error)};
}

// Whatever is wrong, it is tried again: what the VM holds is only free once the
// agent has let go of it.
StepOutcome destroy_vm(const StepInput& input) {
  const auto done = input.agent.vms.destroy_vm(input.row.environment.uid);
  if (!done && done.error().code != ErrorCode::not_found) return retry(done.error());
  return {.kind = StepOutcome::Kind::next, .step = steps::finish};
}

// The agent fetched the job's result before it let the VM go; without one the
// job is lost.
StepOutcome finish(const StepInput& input) {
  StepOutcome out{.kind = StepOutcome::Kind::ended};
  const auto& known = input.row.environment.job;
  if (!known || is_over(*known)) return out;
  const auto told = input.agent.jobs.job(input.row.environment.uid);
  if (!told && told.error().code != ErrorCode::not_found) return retry(told.error());
  const JobStatus now = told && is_over(*told) ? *told : lost(told ? *told : *known);
  out.events = job_events(*known, now, input.row.step_names);
  out.change = [now](EnvironmentRow& row) { row.environment.job = now; };
  return out;
}

}  // namespace

StepOutcome run_destroy_step(const StepInput& input) {
  return input.operation.step == steps::finish ? finish(input) : destroy_vm(input);
}

}  // namespace fuse
