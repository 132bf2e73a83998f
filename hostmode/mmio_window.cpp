#include "hostmode/mmio_window.h"

#include <algorithm>
#include <bit>

#include "base/text.h"
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

std::uint64_t window_within(std::uint64_t gib, std::int32_t memory_mb, int bits) {
  if (bits < 32 || bits > 63) return 0;
  // Below 4 GiB, what does not fit there of the memory, and rounding.
  constexpr std::uint64_t beside = 16;
  const std::uint64_t used = static_cast<std::uint64_t>(std::max(0, memory_mb)) / 1024 + beside;
  const std::uint64_t all = (std::uint64_t{1} << static_cast<unsigned>(bits)) >> 30U;
  return all <= used ? 0 : std::min(gib, all - used);
}

int physical_bits(std::string_view cpuinfo) {
  for (const std::string& line : split(cpuinfo, '\n')) {
    if (!line.starts_with("address sizes")) continue;
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) return 0;
    const std::string_view rest = trim(std::string_view(line).substr(colon + 1));
    return static_cast<int>(parse_int(rest.substr(0, rest.find(' '))).value_or(0));
  }
  return 0;
}

}  // namespace fuse
