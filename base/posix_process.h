#pragma once

#include "base/host.h"

namespace fuse {

// Starts a child (posix_spawn) and holds it by pidfd.
Result<std::unique_ptr<Process>> spawn_process(const SpawnSpec& spec);

// Takes hold of a running process that is not our child: opens a pidfd first
// and compares the start time after, so a recycled pid is not_found, never
// adopted. Dropping the handle does not kill it.
Result<std::unique_ptr<Process>> adopt_process(pid_t pid, std::uint64_t start_time);

// Field 22 of /proc/PID/stat.
Result<std::uint64_t> process_start_time(pid_t pid);

}  // namespace fuse
