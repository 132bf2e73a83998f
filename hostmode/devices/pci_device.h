#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "base/result.h"

namespace fuse {

// One region of memory or ports that a device wants mapped.
struct PciBar {
  int index = 0;
  std::uint64_t size = 0;
  bool memory = true;  // false: ports
  bool prefetchable = false;
  bool assigned = true;  // false: the firmware gave it no place
};

// A PCI function as sysfs shows it.
struct PciDevice {
  std::string address{};               // 0000:41:00.0
  std::string vendor{};                // "10de"
  std::string device{};                // "20b0"
  std::uint16_t pci_class = 0;         // 0x0302: base class and subclass
  std::string driver{};                // empty: none is bound
  std::string group{};                 // number of its IOMMU group; empty: it has none
  std::optional<std::int32_t> numa{};  // absent: the firmware does not say
  std::string physical{};              // a virtual function's physical one; empty: it is none
  std::int32_t virtual_functions = 0;  // how many it has switched on
  bool boot_vga = false;               // the firmware's console is on it
  std::vector<PciBar> bars{};
  std::vector<std::string> reset_methods{};  // what the kernel would try, in order
};

inline constexpr std::string_view pci_devices_dir = "/sys/bus/pci/devices";
inline constexpr std::string_view pci_drivers_dir = "/sys/bus/pci/drivers";
inline constexpr std::string_view vfio_driver = "vfio-pci";

// Everything above of the function at `address`.  not_found when it is gone;
// files that not every device has may be missing.
Result<PciDevice> read_pci_device(Host& host, const std::string& address);

// Vendor and class alone, for looking at a whole bus.
struct PciIdentity {
  std::string vendor{};
  std::uint16_t pci_class = 0;
};
Result<PciIdentity> read_pci_identity(Host& host, const std::string& address);

// The lines of a device's `resource` file, "START END FLAGS" in hexadecimal; the
// ROM and what comes behind it are no BARs.
std::vector<PciBar> parse_pci_resource(std::string_view text);

// The vendor that the device itself answers with, from its configuration space:
// "ffff" when it does not answer.
Result<std::string> read_live_vendor(Host& host, const std::string& address);

// Classes, compared exactly: 0680, an NVSwitch, is no bridge.
[[nodiscard]] bool is_display_class(std::uint16_t pci_class);    // 0300, 0302, 0380
[[nodiscard]] bool is_bridge_class(std::uint16_t pci_class);     // 0600, 0604
[[nodiscard]] bool is_companion_class(std::uint16_t pci_class);  // 0403, 0c03, 0c80
// "audio", "NVMe", or "class 0b40" for one without a name here.
std::string class_words(std::uint16_t pci_class);
// "0302"
std::string class_text(std::uint16_t pci_class);

}  // namespace fuse
