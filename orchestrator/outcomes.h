#pragma once

#include <chrono>
#include <string>

#include "orchestrator/steps.h"
#include "orchestrator/store.h"

namespace fuse {

// What becomes of an operation once the outcome of its step is written.
enum class Onward {
  goes_on,  // there is a next step at once
  waits,    // the lease is given up; it is due again later
  over,     // the operation is gone
};

// Writes what came of a step of `operation` on `row`: both rows as they are now
// in the database.  Appends the events of the step, of the change and of a change
// of state.  `message` is the outcome's error as it may be told.
struct OutcomeTime {
  WallTime now{};
  std::chrono::seconds longest_wait{60};
};
Result<Onward> apply_outcome(StoreTx& tx, OperationRow& operation, EnvironmentRow& row,
                             const StepOutcome& outcome, const OutcomeTime& time);

// Turns whatever is under way for an environment into taking it down, to become
// `final_state` once its VM is gone; a worker that holds it keeps its lease
// unless it only watches.  Changes `row` and appends the event.
Result<void> begin_destroy(StoreTx& tx, EnvironmentRow& row, EnvironmentState final_state,
                           WallTime now);

// A running environment takes nothing new from here on.  Changes `row` and appends
// the event.
Result<void> begin_drain(StoreTx& tx, EnvironmentRow& row, WallTime now);

// Frees what an environment holds on a host: its VM is gone from there.
Result<void> free_held(StoreTx& tx, const std::string& uid, const std::string& host_id);

// Ends an environment whose host has been silent for too long: failed, unless it
// was being taken down anyway, and its job lost.  What it holds on the host stays
// set aside.  Changes `row` and appends the events.
Result<void> lose(StoreTx& tx, EnvironmentRow& row, const Error& why, WallTime now);

// Makes a destroy that waits for its next try due.
Result<void> hasten_destroy(StoreTx& tx, const std::string& uid, WallTime now);

// A "state" event of the row as it is.
EnvironmentEvent state_event(const EnvironmentRow& row);

}  // namespace fuse
