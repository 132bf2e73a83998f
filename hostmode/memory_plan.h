#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/host.h"

namespace fuse {

// A NUMA node of the host.
struct HostNode {
  std::int32_t id = 0;
  std::int64_t free_mb = 0;
  std::int32_t page_kib = 0;      // of its huge pages; 0: it has none free
  std::int64_t free_huge_mb = 0;  // in huge pages of that size
};

// A part of a guest's memory and CPUs, which to the guest is a node of its own.
struct MemoryShare {
  std::optional<std::int32_t> node{};  // of the host; absent: wherever there is room
  std::int32_t memory_mb = 0;
  std::int32_t first_cpu = 0;
  std::int32_t cpus = 0;
  std::int32_t page_kib = 0;  // of huge pages; 0: plain ones

  bool operator==(const MemoryShare&) const = default;
};

struct MemoryPlan {
  std::vector<MemoryShare> shares{};  // empty: the guest's memory is left to the kernel
  std::string note{};                 // why it is not as near to the devices as it could be

  bool operator==(const MemoryPlan&) const = default;
};

// Where the memory of a VM with devices is to be: on the nodes of its devices, a share on
// each, in huge pages where every node has enough of them free.  `devices` are their
// nodes, absent for one that is not known.
MemoryPlan plan_memory(std::int32_t memory_mb, std::int32_t cpus,
                       const std::vector<std::optional<std::int32_t>>& devices,
                       const std::vector<HostNode>& nodes);

// The nodes of this host, and what each has free.  Those that cannot be read are left out.
std::vector<HostNode> read_host_nodes(Host& host);

}  // namespace fuse
