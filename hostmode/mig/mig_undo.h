#pragma once

#include "hostmode/devices/driver_moves.h"
#include "hostmode/mig/mig_files.h"

namespace fuse {

// Begins a change: from here until end_change it can be undone, also after a crash.
Result<void> begin_change(Host& host, const DevicePaths& paths, const MigJournal& journal);
Result<void> end_change(Host& host, const DevicePaths& paths);

// Undoes the change that the journal tells of, if there is one: devices and instances
// that were made go, those that were to be destroyed go, and cards that were not in
// MIG mode leave it.  What was there before is not touched.  The journal stays when
// something cannot be undone.
Result<void> undo_change(Host& host, const DevicePaths& paths, const KernelWrites& writes);

}  // namespace fuse
