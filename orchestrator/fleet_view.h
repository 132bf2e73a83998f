#pragma once

#include <map>
#include <string>

#include "base/locked.h"
#include "orchestrator/host_directory.h"
#include "orchestrator/scheduler.h"
#include "orchestrator/store.h"

namespace fuse {

// What the live environments on a host take of it.
Result<HostCapacity> allocated_on(StoreTx& tx, const std::string& host_id);

// The fleet in memory.  A look asks the database for the hosts' versions only,
// and reads again what has changed.  Safe from several threads.
class FleetView {
 public:
  FleetView(Store& store, const HostDirectory& directory, const Clock& clock)
      : store_(store), directory_(directory), clock_(clock) {}
  Result<Fleet> look();

 private:
  [[nodiscard]] bool reachable(const std::string& id, WallTime seen) const;

  Store& store_;
  const HostDirectory& directory_;
  const Clock& clock_;
  Locked<std::map<std::string, FleetHost>> known_;
};

}  // namespace fuse
