#pragma once

#include <cstddef>
#include <string>

#include "base/clock.h"
#include "base/log.h"
#include "orchestrator/host_directory.h"
#include "orchestrator/store.h"

namespace fuse {

// Asks the hosts' agents what they have, so that the database knows when each was
// last heard of and sees devices come, go and change.
class HostPoller {
 public:
  HostPoller(Store& store, HostDirectory& hosts, Clock& clock, Log& log)
      : store_(store), hosts_(hosts), clock_(clock), log_(log) {}

  // One look at every host, several at a time; returns when all have answered or
  // been given up.  For one thread.
  void pass();

 private:
  void ask(const std::string& id);
  Result<void> refresh(const std::string& id, const HostCapacity& probed);

  Store& store_;
  HostDirectory& hosts_;
  Clock& clock_;
  Log& log_;
};

}  // namespace fuse
