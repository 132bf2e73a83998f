#pragma once

#include <set>
#include <string>
#include <vector>

#include "hostmode/devices/inventory.h"
#include "hostmode/gpu_allocation.h"
#include "hostmode/vm_record.h"
#include "orchestrator/api/host_agent.h"
#include "orchestrator/api/types.h"

namespace fuse {

// What this host may hand over to VMs, whether or not a VM has it now.
struct DevicePool {
  std::vector<GpuGroup> groups{};
  std::vector<GpuDevice> devices{};  // those of the groups, as the wire describes them
  std::vector<InventoryInstance> instances{};
  std::set<std::string> open{};  // groups that a process has open
  std::string summary{};         // what was looked at and found, in words
};

// The groups of the VFIO inventory but for those whose cards are seen to be unfit:
// not bound, kept, sick, set aside.
DevicePool make_pool(const DeviceFiles& files, const DeviceInventory& inventory);

// Reads files and bus.  With no folder of device files there is nothing to hand
// over, and only the summary is filled in.
Result<DevicePool> read_device_pool(Host& host, const DevicePaths& paths, InventoryDepth depth);

// Chooses what a request asks for: whole groups with every function, or MIG
// instances.  What is in `taken` (addresses of functions, UUIDs of instances) or open is
// not given again.  conflict with the wire's text.
Result<std::vector<VmDevice>> allocate_devices(const CreateVmRequest& request,
                                               const DevicePool& pool,
                                               const std::set<std::string>& taken);

// Fills in what the wire says about devices.
void add_devices(HostCapacity& capacity, const DevicePool& pool);

// The instances as the wire describes them.
std::vector<MigInstance> wire_instances(const std::vector<InventoryInstance>& instances);

}  // namespace fuse
