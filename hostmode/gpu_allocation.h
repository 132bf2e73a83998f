#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "orchestrator/api/types.h"

namespace fuse {

// One GPU of an IOMMU group.
struct InventoryGpu {
  std::string uuid{};
  std::string model{};
  std::string slot{};  // its function among those of the group
};

// A complete IOMMU group: every function in it is handed over together.
struct GpuGroup {
  std::string group{};  // its number
  std::string kind{};   // lower case
  std::vector<std::string> slots{};
  std::vector<InventoryGpu> gpus{};
  std::optional<std::int32_t> numa{};  // absent: not known
};

// Whole devices that a VM wants: `count` of a kind, or exactly `uuids`.
struct GpuWish {
  std::int32_t count = 0;
  std::string kind{};  // part of the group's kind or of the model, any case
  std::vector<std::string> uuids{};
};

// Chooses groups, by index in `inventory`, that hold together exactly what is
// wished for and of which none is in `taken`.  If any combination does, one is
// found: on one NUMA node where that works, of the fewest groups, of the lowest
// indexes among those.  conflict otherwise, with the wire's text.
Result<std::vector<std::size_t>> choose_groups(const GpuWish& wish,
                                               std::span<const GpuGroup> inventory,
                                               const std::set<std::string>& taken);

// MIG instances that a VM wants: `count` of a profile, or exactly `uuids`.
struct MigWish {
  std::int32_t count = 0;
  std::string profile{};
  std::string kind{};  // as in GpuWish
  std::vector<std::string> uuids{};
};

// Chooses instances, by index in `inventory`, of which none is in `taken`.  One that
// carries graphics too (+gfx) serves a wish for its plain profile on a host that has
// no plain one.  conflict otherwise, with the wire's text.
Result<std::vector<std::size_t>> choose_instances(const MigWish& wish,
                                                  std::span<const MigInstance> inventory,
                                                  const std::set<std::string>& taken);

}  // namespace fuse
