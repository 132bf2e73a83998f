#pragma once

#include <string>
#include <vector>

#include "base/host.h"
#include "base/result.h"
#include "hostmode/devices/driver_moves.h"
#include "hostmode/devices/holders.h"
#include "hostmode/mig/profile.h"

namespace fuse {

// A MIG instance has no PCI function of its own.  NVIDIA's vGPU host driver makes a
// device of it that a VM can take: on older kernels a mediated device, on newer ones
// a virtual function whose vGPU type was set.  Which of the two a host does is found
// out by looking.
enum class VgpuWay {
  mdev,    // /sys/class/mdev_bus
  vendor,  // VF/nvidia/current_vgpu_type
  none,
};

struct VgpuHost {
  VgpuWay way = VgpuWay::none;
  std::vector<std::string> functions{};  // addresses that can carry a device
  std::string missing{};                 // of `none`: what this host lacks, in words
  bool can_switch_on = false;            // of `none`: sriov-manage is there to help
};

// Looks at a card and its virtual functions.
VgpuHost look_for_vgpu(Host& host, const std::string& card);
// Switches the card's virtual functions on by NVIDIA's sriov-manage.  Takes away the
// instances that it has.
Result<void> switch_on_functions(Host& host, const std::string& card);

inline constexpr std::string_view sriov_manage = "/usr/lib/nvidia/sriov-manage";

// Where a device for an instance would be made, found before anything is.
struct VgpuPlace {
  fs::path file{};     // the file in sysfs that makes it
  std::string text{};  // what is written there
  std::string path{};  // the device, once it is made
};
// unavailable when no function offers a type for that profile.  An mdev is named by
// `uuid`.
Result<VgpuPlace> find_vgpu_place(Host& host, const VgpuHost& vgpu, const MigProfile& profile,
                                  const std::string& uuid);
Result<void> make_vgpu(Host& host, const VgpuPlace& place);
// Takes it away again; success when it is gone.
Result<void> remove_vgpu(Host& host, const std::string& path, const KernelWrites& writes);
// Whether the device is there and, for a virtual function, carries a vGPU.
[[nodiscard]] bool has_vgpu(Host& host, const std::string& path);
// Which processes have it open.
std::vector<DeviceHolder> vgpu_holders(Host& host, const std::string& path);

}  // namespace fuse
