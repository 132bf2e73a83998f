#pragma once

#include <iosfwd>
#include <string>
#include <vector>

#include "base/clock.h"
#include "orchestrator/api/host_api.h"
#include "orchestrator/api/types.h"

namespace fuse::cmd {

// Hosts as people read them.

// "3/16": used and total.
std::string usage_text(std::int64_t used, std::int64_t total);
// "active", "cordoned", "unreachable, active".
std::string state_text(const HostInfo& host);
// "4 a100, 1 free", "7 1g.10gb, 2 free", "-".
std::string gpu_text(const HostInfo& host);

void print_hosts(std::ostream& out, const std::vector<HostInfo>& hosts, WallTime now,
                 bool bold_head);
// Everything about one, with the environments that hold its devices.
void print_host(std::ostream& out, const HostInfo& host,
                const std::vector<Environment>& environments, WallTime now);

}  // namespace fuse::cmd
