#pragma once

#include <chrono>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "orchestrator/api/host_agent.h"
#include "orchestrator/store.h"

namespace fuse {

// What becomes of the environments of a host that does not answer: they are told
// so, and given up when it lasts.  Their VMs may go on there, so what they hold
// stays theirs until the host is back and says otherwise.  For one thread.
class SilentHosts {
 public:
  SilentHosts(Store& store, Clock& clock, Log& log, std::chrono::seconds lost_after)
      : store_(store), clock_(clock), log_(log), lost_after_(lost_after) {}

  // To be called at each look at a host that does not answer.  Time is counted
  // from the first such look, by the steady clock: neither a machine that was
  // suspended nor a program that was not running has waited for the host.
  Result<void> note_silent(const std::string& id);
  // A host answers.  Frees what environments hold that were given up, as far as
  // their VMs are gone; VMs that are not are for whoever destroys orphans.
  Result<void> note_answer(const std::string& id, HostAgent agent);

 private:
  Result<void> tell(const std::string& id, const EnvironmentEvent& event);
  Result<void> give_up(const std::string& id, SteadyTime since);

  Store& store_;
  Clock& clock_;
  Log& log_;
  std::chrono::seconds lost_after_;
  std::map<std::string, SteadyTime> since_;
};

}  // namespace fuse
