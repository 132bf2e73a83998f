#include "orchestrator/outcomes.h"

#include <algorithm>

#include "base/ids.h"
#include "base/text.h"
#include "orchestrator/job_events.h"

namespace fuse {

namespace {

void stamp(EnvironmentRow& row, WallTime now) {
  row.environment.updated_at = to_rfc3339(now);
}

std::int64_t milliseconds_between(WallTime from, WallTime to) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(to - from).count();
}

// One transaction's view of an outcome.
struct Applying {
  StoreTx& tx;
  OperationRow& operation;
  EnvironmentRow& row;
  const StepOutcome& outcome;
  const OutcomeTime& time;
};

Result<void> append_all(StoreTx& tx, const Environment& environment,
                        const std::vector<EnvironmentEvent>& events, WallTime now) {
  for (EnvironmentEvent event : events) {
    event.updated_at = to_rfc3339(now);
    if (auto done = tx.events.append(environment, std::move(event)); !done) return done;
  }
  return {};
}

Result<void> append_all(Applying& a, const std::vector<EnvironmentEvent>& events) {
  return append_all(a.tx, a.row.environment, events, a.time.now);
}

// That the step is over, when it was worth a line when it began.
std::vector<EnvironmentEvent> end_of_step(const Applying& a) {
  if (a.operation.kind != OperationKind::create) return {};
  const StepTitle title = title_of(a.operation.step, a.row);
  if (title.key.empty()) return {};
  EnvironmentEvent event{.event = "step", .key = title.key, .message = title.message};
  event.duration_ms = milliseconds_between(a.operation.step_started, a.time.now);
  return {std::move(event)};
}

std::vector<EnvironmentEvent> begin_of_step(const Applying& a) {
  if (a.operation.kind != OperationKind::create) return {};
  const StepTitle title = title_of(a.operation.step, a.row);
  if (title.key.empty()) return {};
  return {EnvironmentEvent{.event = "step", .key = title.key, .message = title.message}};
}

Result<void> save(Applying& a) {
  if (a.outcome.change) a.outcome.change(a.row);
  stamp(a.row, a.time.now);
  return a.tx.environments.update(a.row);
}

Result<Onward> go_next(Applying& a) {
  if (a.outcome.change) {
    if (auto done = save(a); !done) return done.error();
  }
  if (auto done = append_all(a, end_of_step(a)); !done) return done.error();
  a.operation.step = a.outcome.step;
  a.operation.step_started = a.time.now;
  a.operation.attempts = 0;
  a.operation.next_try = a.time.now;
  if (auto done = a.tx.operations.update(a.operation); !done) return done.error();
  if (auto done = append_all(a, begin_of_step(a)); !done) return done.error();
  return Onward::goes_on;
}

Result<Onward> go_again(Applying& a) {
  if (a.outcome.change) {
    if (auto done = save(a); !done) return done.error();
  }
  if (auto done = append_all(a, a.outcome.events); !done) return done.error();
  return Onward::goes_on;
}

// Turns the operation into a destroy that its holder goes on with.
Result<void> turn_round(Applying& a) {
  a.operation.kind = OperationKind::destroy;
  a.operation.step = steps::destroy_vm;
  a.operation.step_started = a.time.now;
  a.operation.attempts = 0;
  a.operation.next_try = a.time.now;
  return a.tx.operations.update(a.operation);
}

Result<Onward> go_down(Applying& a, EnvironmentState final_state) {
  if (auto done = append_all(a, a.outcome.events); !done) return done.error();
  a.row.final_state = final_state;
  a.row.environment.state = EnvironmentState::destroying;
  if (auto done = save(a); !done) return done.error();
  if (auto done = turn_round(a); !done) return done.error();
  if (auto done = append_all(a, {state_event(a.row)}); !done) return done.error();
  return Onward::goes_on;
}

Result<Onward> fail(Applying& a) {
  const bool creating = a.operation.kind == OperationKind::create;
  a.row.environment.error =
      creating ? cat("provision vm ", a.row.environment.id, ": ", a.outcome.error.message)
               : a.outcome.error.message;
  a.row.error_code = a.outcome.error.code == ErrorCode::unreachable ? ErrorCode::unavailable
                                                                    : a.outcome.error.code;
  return go_down(a, EnvironmentState::failed);
}

Result<Onward> retry_later(Applying& a) {
  const bool creating = a.operation.kind == OperationKind::create;
  if (creating && a.time.now >= a.operation.deadline) return fail(a);
  a.operation.attempts += 1;
  const std::int64_t doublings = std::min<std::int64_t>(a.operation.attempts - 1, 10);
  const auto wait = std::min(std::chrono::seconds(1LL << doublings), a.time.longest_wait);
  a.operation.next_try = a.time.now + wait;
  a.operation.lease_owner.clear();
  a.operation.lease_until = {};
  if (auto done = a.tx.operations.update(a.operation); !done) return done.error();
  return Onward::waits;
}

Result<Onward> go_running(Applying& a) {
  if (auto done = append_all(a, end_of_step(a)); !done) return done.error();
  a.row.environment.state = EnvironmentState::running;
  if (auto done = save(a); !done) return done.error();
  if (auto done = a.tx.deliveries.erase(a.row.environment.uid); !done) return done.error();
  if (auto done = append_all(a, {state_event(a.row)}); !done) return done.error();
  if (!a.row.has_job) {
    if (auto done = a.tx.operations.remove(a.operation.id); !done) return done.error();
    return Onward::over;
  }
  a.operation.kind = OperationKind::watch;
  a.operation.step = steps::follow_job;
  a.operation.step_started = a.time.now;
  a.operation.attempts = 0;
  a.operation.next_try = a.time.now;
  if (auto done = a.tx.operations.update(a.operation); !done) return done.error();
  return Onward::goes_on;
}

Result<Onward> settle(Applying& a) {
  if (a.outcome.change) {
    if (auto done = save(a); !done) return done.error();
  }
  if (auto done = append_all(a, a.outcome.events); !done) return done.error();
  if (auto done = a.tx.operations.remove(a.operation.id); !done) return done.error();
  return Onward::over;
}

// Nothing follows: its task id is free again.
Result<void> close(StoreTx& tx, EnvironmentRow& row, const std::string& operation, WallTime now) {
  row.environment.state = row.final_state;
  row.environment.url.clear();
  row.environment.endpoints.clear();
  row.ended = now;
  stamp(row, now);
  if (auto done = tx.environments.update(row); !done) return done;
  if (auto done = tx.deliveries.erase(row.environment.uid); !done) return done;
  if (auto done = tx.operations.remove(operation); !done) return done;
  return tx.events.append(row.environment, state_event(row));
}

// The VM is gone: only now is what it held free.
Result<Onward> end(Applying& a) {
  const std::string uid = a.row.environment.uid;
  if (auto done = append_all(a, a.outcome.events); !done) return done.error();
  if (a.outcome.change) a.outcome.change(a.row);
  if (auto done = free_held(a.tx, uid, a.row.environment.host_id); !done) return done.error();
  if (auto done = close(a.tx, a.row, a.operation.id, a.time.now); !done) return done.error();
  return Onward::over;
}

}  // namespace

EnvironmentEvent state_event(const EnvironmentRow& row) {
  const Environment& environment = row.environment;
  EnvironmentEvent event{.state = environment.state, .error = environment.error};
  if (!is_terminal(environment.state)) event.url = environment.url;
  event.updated_at = environment.updated_at;
  return event;
}

Result<Onward> apply_outcome(StoreTx& tx, OperationRow& operation, EnvironmentRow& row,
                             const StepOutcome& outcome, const OutcomeTime& time) {
  Applying a{tx, operation, row, outcome, time};
  switch (outcome.kind) {
    case StepOutcome::Kind::next:
      return go_next(a);
    case StepOutcome::Kind::again:
      return go_again(a);
    case StepOutcome::Kind::retry:
      return retry_later(a);
    case StepOutcome::Kind::failed:
      return fail(a);
    case StepOutcome::Kind::running:
      return go_running(a);
    case StepOutcome::Kind::take_down:
      return go_down(a, EnvironmentState::destroyed);
    case StepOutcome::Kind::settled:
      return settle(a);
    case StepOutcome::Kind::ended:
      return end(a);
  }
  return Onward::over;
}

Result<void> begin_destroy(StoreTx& tx, EnvironmentRow& row, EnvironmentState final_state,
                           WallTime now) {
  const auto found = tx.operations.of_environment(row.environment.uid);
  if (!found) return found.error();
  row.final_state = final_state;
  row.environment.state = EnvironmentState::destroying;
  stamp(row, now);
  if (auto done = tx.environments.update(row); !done) return done;
  if (!*found) {
    auto made = tx.operations.insert({.id = new_ulid(now),
                                      .environment_uid = row.environment.uid,
                                      .kind = OperationKind::destroy,
                                      .step = std::string(steps::destroy_vm),
                                      .step_started = now,
                                      .next_try = now});
    if (!made) return made;
  } else if ((*found)->kind != OperationKind::destroy) {
    OperationRow operation = **found;
    // Whoever creates the VM at this moment must be done with it first; whoever
    // watches a job need not be waited for.
    if (operation.kind == OperationKind::watch) {
      operation.lease_owner.clear();
      operation.lease_until = {};
    }
    operation.kind = OperationKind::destroy;
    operation.step = steps::destroy_vm;
    operation.step_started = now;
    operation.attempts = 0;
    operation.next_try = now;
    if (auto done = tx.operations.update(operation); !done) return done;
  }
  return tx.events.append(row.environment, state_event(row));
}

Result<void> begin_drain(StoreTx& tx, EnvironmentRow& row, WallTime now) {
  row.environment.state = EnvironmentState::draining;
  stamp(row, now);
  if (auto done = tx.environments.update(row); !done) return done;
  return tx.events.append(row.environment, state_event(row));
}

Result<void> free_held(StoreTx& tx, const std::string& uid, const std::string& host_id) {
  if (auto done = tx.bindings.release(uid); !done) return done;
  if (auto done = tx.reservations.release(uid); !done) return done;
  return tx.hosts.touch(host_id);
}

Result<void> lose(StoreTx& tx, EnvironmentRow& row, const Error& why, WallTime now) {
  if (row.environment.state != EnvironmentState::destroying) {
    row.final_state = EnvironmentState::failed;
    row.environment.error = why.message;
    row.error_code = why.code;
  }
  if (const auto job = row.environment.job; job && !is_over(*job)) {
    row.environment.job = lost(*job);
    const auto events = job_events(*job, *row.environment.job, row.step_names);
    if (auto done = append_all(tx, row.environment, events, now); !done) return done;
  }
  const auto operation = tx.operations.of_environment(row.environment.uid);
  if (!operation) return operation.error();
  return close(tx, row, *operation ? (*operation)->id : std::string(), now);
}

Result<void> hasten_destroy(StoreTx& tx, const std::string& uid, WallTime now) {
  auto operation = tx.operations.of_environment(uid);
  if (!operation) return operation.error();
  if (!*operation || (*operation)->next_try <= now) return {};
  (*operation)->next_try = now;
  tx.touched.insert(uid);
  return tx.operations.update(**operation);
}

}  // namespace fuse
