#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/host.h"
#include "hostmode/devices/inventory_files.h"

namespace fuse {

// What the operator wants of a card.
enum class CardRole {
  whole,  // handed over as it is
  mig,    // cut into instances
  off,    // left alone
};
std::string_view to_string(CardRole role);

// When a function was last reset: what the kernel's log says of it before that is over.
struct LastReset {
  std::string boot_id{};
  double seconds = 0;  // since the host started, as the kernel's log counts them

  bool operator==(const LastReset&) const = default;
};

// The folder with the files about this host's devices, and their names.
struct DevicePaths {
  fs::path dir{};             // QEMU_DIR
  fs::path vfio_inventory{};  // empty: vfio-inventory.txt in it
  fs::path mig_inventory{};   // empty: mig-inventory.txt in it

  [[nodiscard]] fs::path vfio() const {
    return vfio_inventory.empty() ? dir / "vfio-inventory.txt" : vfio_inventory;
  }
  [[nodiscard]] fs::path mig() const {
    return mig_inventory.empty() ? dir / "mig-inventory.txt" : mig_inventory;
  }
  [[nodiscard]] fs::path roles() const { return dir / "device-roles.txt"; }
  [[nodiscard]] fs::path quarantine() const { return dir / "device-quarantine.txt"; }
  [[nodiscard]] fs::path facts() const { return dir / "device-facts.txt"; }
  [[nodiscard]] fs::path resets() const { return dir / "device-resets.txt"; }
  [[nodiscard]] fs::path layout() const { return dir / "mig-layout.txt"; }
  [[nodiscard]] fs::path journal() const { return dir / "mig-journal.txt"; }
};

// The text files of the folder as values.
struct DeviceFiles {
  std::vector<InventoryGroup> groups{};
  std::vector<InventoryInstance> instances{};
  std::map<std::string, KeptFacts> facts{};
  std::map<std::string, CardRole> roles{};           // by address; absent: not said
  std::map<std::string, std::string> quarantined{};  // by address: why
  std::map<std::string, LastReset> resets{};         // by address
};

// Files that are missing are empty ones.  A file that cannot be understood is an
// error that names file and line: guessing could hand out what the operator kept.
Result<DeviceFiles> read_device_files(Host& host, const DevicePaths& paths);

// Each replaces its file whole, making the folder where it is missing.
Result<void> write_vfio_inventory(Host& host, const DevicePaths& paths,
                                  const std::vector<InventoryGroup>& groups);
Result<void> write_mig_inventory(Host& host, const DevicePaths& paths,
                                 const std::vector<InventoryInstance>& instances);
Result<void> write_kept_facts(Host& host, const DevicePaths& paths,
                              const std::map<std::string, KeptFacts>& facts);
Result<void> write_roles(Host& host, const DevicePaths& paths,
                         const std::map<std::string, CardRole>& roles);
// Notes that these functions were reset just now.
Result<void> note_resets(Host& host, const DevicePaths& paths,
                         const std::vector<std::string>& addresses);
// Sets a card aside until its line is removed.  What is there stays.
Result<void> quarantine_card(Host& host, const DevicePaths& paths, const std::string& address,
                             const std::string& reason);

}  // namespace fuse
