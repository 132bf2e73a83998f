#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hostmode/devices/pci_device.h"

namespace fuse {

// How much address space above its memory a VM needs for the large regions of its
// devices, in GiB; 0 when what QEMU and the firmware give by themselves (32 GiB) is
// enough.  `bars` are those of each function, by address: a slot's regions lie
// together behind one port, aligned to the largest.
[[nodiscard]] std::uint64_t mmio_window_gib(const std::map<std::string, std::vector<PciBar>>& bars);

// As much of it as a CPU with that many bits of physical address leaves beside the VM's
// memory: QEMU does not start with more.
[[nodiscard]] std::uint64_t window_within(std::uint64_t gib, std::int32_t memory_mb, int bits);

// The bits of physical address that "address sizes" in /proc/cpuinfo tells; 0: none.
[[nodiscard]] int physical_bits(std::string_view cpuinfo);

}  // namespace fuse
