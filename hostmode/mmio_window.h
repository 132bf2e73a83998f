#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "hostmode/devices/pci_device.h"

namespace fuse {

// How much address space above its memory a VM needs for the large regions of its
// devices, in GiB; 0 when what QEMU and the firmware give by themselves (32 GiB) is
// enough.  `bars` are those of each function, by address: a slot's regions lie
// together behind one port, aligned to the largest.
[[nodiscard]] std::uint64_t mmio_window_gib(const std::map<std::string, std::vector<PciBar>>& bars);

}  // namespace fuse
