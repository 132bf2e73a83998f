#include "hostmode/mmio_window.h"

#include <bit>

#include "hostmode/devices/pci_address.h"

namespace fuse {

std::uint64_t mmio_window_gib(const std::map<std::string, std::vector<PciBar>>& bars) {
  constexpr std::uint64_t usual = std::uint64_t{32} << 30U;
  std::map<std::string, std::uint64_t> slots;
  for (const auto& [address, of_function] : bars) {
    std::uint64_t& bytes = slots[pci_slot(address).value_or(address)];
    for (const PciBar& bar : of_function) {
      if (bar.memory && bar.prefetchable) bytes += bar.size;
    }
  }
  std::uint64_t total = 0;
  // A power of two leaves room to align the largest region of the slot.
  for (const auto& [slot, bytes] : slots) total += bytes == 0 ? 0 : std::bit_ceil(bytes);
  if (total * 2 <= usual) return 0;
  return (total + usual + (std::uint64_t{1} << 30U) - 1) >> 30U;
}

}  // namespace fuse
