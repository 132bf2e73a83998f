#pragma once

#include "base/host.h"
#include "base/result.h"
#include "orchestrator/api/types.h"

namespace fuse {

// CPUs that are online, from the kernel's list ("0-3,6").
Result<std::int32_t> count_cpus(std::string_view list);
// MemTotal of /proc/meminfo in MiB, rounded down.
Result<std::int32_t> total_ram_mb(std::string_view meminfo);
// amd64, arm64, or the machine's own name in lower case.
std::string arch_of(std::string_view machine);

// What this host has.  `disk` is a folder on the file system whose free space
// counts.  Devices are filled in by
// add_devices (hostmode/device_pool.h).
Result<HostCapacity> read_capacity(Host& host, const fs::path& disk);

}  // namespace fuse
