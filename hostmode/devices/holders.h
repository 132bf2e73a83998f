#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "hostmode/devices/pci_device.h"

namespace fuse {

// A process that has a device open.
struct DeviceHolder {
  std::int64_t pid = 0;
  std::string command{};  // "python3"
  std::string service{};  // "nvidia-persistenced.service"; empty: of no unit
  std::string file{};     // "/dev/nvidia0"
};

// Which processes have which of these files open, by looking at every process.
// Those that may not be looked at are left out.
std::vector<DeviceHolder> find_holders(Host& host, const std::set<std::string>& files);

// The device files that lead to a function: those of its driver, its DRM nodes,
// and /dev/vfio/GROUP.  For an NVIDIA card whose number is not known, those of
// every NVIDIA card.
std::set<std::string> device_files_of(Host& host, const PciDevice& device);

// The unit or container of a process, from /proc/PID/cgroup: the last part of
// the path that ends in .service or .scope.
std::string unit_of_cgroup(std::string_view text);

// "pid 812 (nvidia-persiste, nvidia-persistenced.service) has /dev/nvidia0 open, ..."
std::string holder_words(const std::vector<DeviceHolder>& holders);

// How to end the hold of the first of them, in words.
std::string holder_hint(const std::vector<DeviceHolder>& holders, const std::string& address);

}  // namespace fuse
