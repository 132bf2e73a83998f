#include "hostmode/devices/pci_device.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/text.h"
#include "hostmode/devices/pci_address.h"

namespace fuse {

namespace {

template <class N>
std::optional<N> parse_hex(std::string_view text) {
  if (text.starts_with("0x")) text.remove_prefix(2);
  N value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value, 16);
  if (failure != std::errc() || text.empty() || end != text.data() + text.size()) {
    return std::nullopt;
  }
  return value;
}

// "0x10de\n" -> "10de".
Result<std::string> read_id(Host& host, const fs::path& file) {
  const auto text = host.read_file(file);
  if (!text) return text.error();
  std::string id = lowercase(trim(*text));
  if (id.starts_with("0x")) id.erase(0, 2);
  return id;
}

// "" for a file that is not there, or that the device refuses to fill.
std::string read_optional(Host& host, const fs::path& file) {
  const auto text = host.read_file(file);
  return text ? std::string(trim(*text)) : "";
}

// The last part of a sysfs link, "" when there is none: a device may have no
// driver, and has no group while the IOMMU is off.
std::string link_name(Host& host, const fs::path& link) {
  const auto target = host.read_link(link);
  return target ? target->filename().native() : "";
}

std::vector<std::string> words_of(std::string_view text) {
  std::vector<std::string> words;
  for (std::string& word : split(text, ' ')) {
    if (!word.empty()) words.push_back(std::move(word));
  }
  return words;
}

fs::path dir_of(const std::string& address) {
  return fs::path(pci_devices_dir) / address;
}

// How many virtual functions a device has switched on.  sriov_numvfs is read only where
// there is one: the kernel makes whoever reads it wait while a driver is being taken from
// the device, which may last for ever.
std::int32_t virtual_functions_of(Host& host, const fs::path& dir) {
  const auto names = host.list_dir(dir);
  const bool any = names && std::ranges::any_of(*names, [](const std::string& name) {
                     return name.starts_with("virtfn");
                   });
  if (!any) return 0;
  return static_cast<std::int32_t>(
      parse_int(read_optional(host, dir / "sriov_numvfs")).value_or(0));
}

std::optional<PciBar> parse_bar(int index, std::string_view line) {
  constexpr std::uint64_t is_memory = 0x200;
  constexpr std::uint64_t is_prefetchable = 0x2000;
  const auto words = words_of(trim(line));
  if (words.size() != 3) return std::nullopt;
  const auto start = parse_hex<std::uint64_t>(words[0]);
  const auto end = parse_hex<std::uint64_t>(words[1]);
  const auto flags = parse_hex<std::uint64_t>(words[2]);
  if (!start || !end || !flags || *flags == 0 || *end <= *start) return std::nullopt;
  return PciBar{.index = index,
                .size = *end - *start + 1,
                .memory = (*flags & is_memory) != 0,
                .prefetchable = (*flags & is_prefetchable) != 0,
                .assigned = *start != 0};
}

}  // namespace

std::vector<PciBar> parse_pci_resource(std::string_view text) {
  constexpr int most_bars = 6;
  std::vector<PciBar> bars;
  int index = 0;
  for (const std::string& line : split(text, '\n')) {
    if (index == most_bars) break;
    if (const auto bar = parse_bar(index, line)) bars.push_back(*bar);
    ++index;
  }
  return bars;
}

Result<PciIdentity> read_pci_identity(Host& host, const std::string& address) {
  auto vendor = read_id(host, dir_of(address) / "vendor");
  if (!vendor) return vendor.error();
  const auto code = read_id(host, dir_of(address) / "class");
  if (!code) return code.error();
  const auto number = parse_hex<std::uint32_t>(*code);
  if (!number || *number > 0xFFFFFFU) {
    return Error{ErrorCode::internal, cat((dir_of(address) / "class").native(), " holds \"", *code,
                                          "\", not a PCI class")};
  }
  return PciIdentity{std::move(*vendor), static_cast<std::uint16_t>(*number >> 8U)};
}

Result<PciDevice> read_pci_device(Host& host, const std::string& address) {
  const fs::path dir = dir_of(address);
  auto identity = read_pci_identity(host, address);
  if (!identity) return identity.error();
  auto device = read_id(host, dir / "device");
  if (!device) return device.error();
  PciDevice out{.address = address,
                .vendor = std::move(identity->vendor),
                .device = std::move(*device),
                .pci_class = identity->pci_class,
                .driver = link_name(host, dir / "driver"),
                .group = link_name(host, dir / "iommu_group"),
                .physical = link_name(host, dir / "physfn"),
                .boot_vga = read_optional(host, dir / "boot_vga") == "1",
                .bars = parse_pci_resource(read_optional(host, dir / "resource")),
                .reset_methods = words_of(read_optional(host, dir / "reset_method"))};
  const auto node = parse_int(read_optional(host, dir / "numa_node"));
  if (node && *node >= 0) out.numa = static_cast<std::int32_t>(*node);
  out.virtual_functions = virtual_functions_of(host, dir);
  return out;
}

Result<std::string> read_live_vendor(Host& host, const std::string& address) {
  const auto config = host.read_file(dir_of(address) / "config");
  if (!config) return config.error();
  if (config->size() < 2) return std::string("ffff");
  const std::array<char, 2> bytes = {(*config)[1], (*config)[0]};  // little-endian
  return hex_encode({bytes.data(), bytes.size()});
}

bool is_display_class(std::uint16_t pci_class) {
  return pci_class == 0x0300 || pci_class == 0x0302 || pci_class == 0x0380;
}

bool is_bridge_class(std::uint16_t pci_class) {
  return pci_class == 0x0600 || pci_class == 0x0604;
}

bool is_companion_class(std::uint16_t pci_class) {
  return pci_class == 0x0403 || pci_class == 0x0C03 || pci_class == 0x0C80;
}

std::string class_text(std::uint16_t pci_class) {
  const std::array<char, 2> bytes = {static_cast<char>(pci_class >> 8U),
                                     static_cast<char>(pci_class & 0xFFU)};
  return hex_encode({bytes.data(), bytes.size()});
}

std::string class_words(std::uint16_t pci_class) {
  struct Name {
    std::uint16_t pci_class;
    std::string_view words;
  };
  static constexpr std::array names = {
      Name{0x0106, "SATA"},         Name{0x0107, "SAS"},         Name{0x0108, "NVMe"},
      Name{0x0200, "network"},      Name{0x0207, "InfiniBand"},  Name{0x0300, "VGA"},
      Name{0x0302, "3D"},           Name{0x0380, "display"},     Name{0x0403, "audio"},
      Name{0x0600, "host bridge"},  Name{0x0601, "ISA bridge"},  Name{0x0604, "PCI bridge"},
      Name{0x0680, "other bridge"}, Name{0x0C03, "USB"},         Name{0x0C05, "SMBus"},
      Name{0x0C80, "USB-C"},        Name{0x1200, "accelerator"},
  };
  const auto found = std::ranges::find(names, pci_class, &Name::pci_class);
  return found == names.end() ? cat("class ", class_text(pci_class)) : std::string(found->words);
}

}  // namespace fuse
