#pragma once

#include <functional>
#include <string>
#include <vector>

#include "hostmode/devices/driver_moves.h"
#include "hostmode/mig/mig_card.h"
#include "hostmode/mig/mig_files.h"

namespace fuse {

struct MigApplyOptions {
  std::vector<LayoutWish> wishes{};  // none: the layout that was persisted
  std::vector<std::string> cards{};  // only these, by address; none: any that may be cut
  KernelWrites writes{};
  std::function<std::string()> new_uuid{};  // of devices; tests fix it
  // Told of each step, as in "make 1g.10gb at 0 of 0000:41:00.0".
  std::function<void(const std::string& step)> tell = [](const std::string&) {};
};

struct MigOutcome {
  std::size_t made = 0;  // instances
  std::vector<InventoryInstance> instances{};
};

// Carves what is missing: plans it, refuses before the first change what cannot
// work, switches MIG mode where need be, makes the instances one by one and a device
// of each that a VM can take, reads everything back, and writes layout, roles and
// inventory.  Nothing that was there is touched.  When a step fails, what was done is
// undone; after a crash the next call undoes it.
Result<MigOutcome> apply_mig(Host& host, const DevicePaths& paths, const MigApplyOptions& options);

// An instance on this host, whoever made it.
struct MigInstanceView {
  std::string card{};
  std::string gpu{};  // the card's UUID
  GpuInstance instance{};
  std::string mig{};     // its own UUID; empty: nvidia-smi does not tell
  std::string device{};  // what VMs call it; empty: not one of fuse's
  std::string path{};    // of the device; empty: there is none
  std::vector<DeviceHolder> holders{};
};
Result<std::vector<MigInstanceView>> list_mig(Host& host, const DevicePaths& paths);

// Takes an instance away, by its device's or its own UUID, and forgets it.  not_found;
// conflict while a VM has it.
Result<void> destroy_mig(Host& host, const DevicePaths& paths, const std::string& uuid,
                         const KernelWrites& writes);

}  // namespace fuse
