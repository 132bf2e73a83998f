#pragma once

#include <chrono>
#include <optional>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/locked.h"
#include "base/log.h"
#include "orchestrator/host_directory.h"
#include "orchestrator/steps.h"
#include "orchestrator/store.h"

namespace fuse {

struct WorkerOptions {
  std::string owner{};                    // of leases; nobody else's
  std::chrono::seconds lease{60};         // how long a worker that died is waited for
  std::chrono::seconds longest_wait{60};  // between two tries of a step
  bool guest_credentials = false;         // as StepInput
};

// Works on operations: leases one that is due, does its steps one after another
// and writes what came of each.  Any number of threads may call turn() and run().
// A worker that vanishes between two steps, or within one, leaves an operation
// that another goes on with once the lease is over.
class Worker {
 public:
  Worker(Store& store, const HostDirectory& hosts, Clock& clock, Log& log, WorkerOptions options);

  // Does one step of one operation, if any is due.
  enum class Turn { idle, worked };
  Turn turn();

  // Takes turns until stopped.
  void run(const std::stop_token& stop);

  // Makes every look at a running environment that waits for its time due now.
  void hurry();

  // Extends the leases of everything that is worked on.  Call it well within
  // their length.
  void renew();

  // Gives back every lease, so that another can go on at once.  When no thread
  // takes turns any more.
  void release();

 private:
  // An operation that this worker has leased, between two of its steps.
  struct Held {
    OperationRow operation{};
    SteadyTime due{};
    bool resumed = false;
  };
  // Everything a step needs from the database.
  struct Loaded {
    EnvironmentRow row{};
    std::optional<CreateEnvironmentRequest> request{};
    std::vector<BindingRow> bindings{};
  };
  enum class Grip { kept, lost };

  // `busy` has every operation that this worker holds, also those whose step is
  // under way: a lease that ran out by accident must not be taken twice.
  struct Holding {
    std::vector<Held> waiting{};
    std::set<std::string> busy{};
  };

  std::optional<Held> take_due();
  std::optional<Held> take_at_once(const std::string& id);
  Result<std::optional<Held>> claim();
  // Leases that are ours in the database only: the answer to their claim was lost,
  // or another thread was about to let go of the operation when it was claimed.
  void adopt(const std::vector<std::string>& ids);
  [[nodiscard]] std::chrono::milliseconds until_due() const;
  Result<std::optional<Loaded>> load(Held& held);
  StepOutcome step(const Held& held, const Loaded& loaded) const;
  // Writes what came of a step, unless the operation has become another's or
  // something else is wanted of it by now.
  Result<Grip> write(Held& held, const StepOutcome& outcome, const Loaded& loaded);
  Result<Grip> write_in(StoreTx& tx, Held& held, const StepOutcome& outcome,
                        const Loaded& loaded) const;
  void work(Held held);
  void put_back(Held held, std::chrono::milliseconds delay);
  void let_go(const Held& held);

  Store& store_;
  const HostDirectory& hosts_;
  Clock& clock_;
  Log& log_;
  WorkerOptions options_;
  Locked<Holding> holding_;
};

}  // namespace fuse
