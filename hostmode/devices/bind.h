#pragma once

#include <string>
#include <vector>

#include "hostmode/devices/driver_moves.h"
#include "hostmode/devices/inventory.h"

namespace fuse {

struct BindOptions {
  InventoryOptions inventory{};
  std::vector<std::string> slots{};  // only the groups of these; empty: every group
  KernelWrites writes{};
};

// What became of one group.
struct GroupOutcome {
  enum class Kind {
    bound,       // moved to vfio-pci now
    already,     // was there
    left_alone,  // the operator's, the console's, or one for MIG
    failed,
  };
  std::string group{};
  std::vector<std::string> slots{};  // of its GPUs
  Kind kind = Kind::bound;
  std::string reason{};  // of those left alone or failed
  std::string hint{};
};

// Why a group cannot be moved as it stands, or nothing.
std::optional<GroupOutcome> bind_objection(const CardGroup& group);
// The functions to move, cards before their companions: a sound chip that is gone
// from under a card's driver has brought kernels down.
std::vector<DriverMove> bind_moves(const CardGroup& group);
// The line of the group in the VFIO inventory.
InventoryGroup inventory_line(const CardGroup& group);
// `lines` with that of every group as it stands now; lines of groups that are not
// bound, and of cards that are gone from the bus, are left out.
std::vector<InventoryGroup> updated_lines(const std::vector<InventoryGroup>& lines,
                                          const DeviceInventory& now, Host& host);

// Moves every group that may be moved to vfio-pci: what nvidia-smi tells is kept
// first, each group is moved as a whole or not at all, and the inventory is
// written.  A group that fails does not keep the others.  not_found when a slot
// names no card.
Result<std::vector<GroupOutcome>> bind_devices(Host& host, const DevicePaths& paths,
                                               const BindOptions& options);

// Gives the group of that function back to the host's drivers: out of the
// inventory first, then its companions, then its cards.  conflict while something
// has it open.
Result<GroupOutcome> unbind_device(Host& host, const DevicePaths& paths, const std::string& slot,
                                   const BindOptions& options);

}  // namespace fuse
