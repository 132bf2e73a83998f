#pragma once

#include <map>
#include <string>
#include <vector>

#include "hostmode/devices/device_files.h"
#include "hostmode/devices/gpu_groups.h"
#include "hostmode/devices/holders.h"
#include "hostmode/devices/kernel_log.h"
#include "hostmode/devices/smi_query.h"

namespace fuse {

// How a card stands.
enum class CardState {
  ready,        // on vfio-pci with its whole group: a VM can have it
  unbound,      // could be: bind it
  in_use,       // a process has it open, a VM's QEMU among others
  mig,          // in MIG mode, or meant to be: never handed over whole
  display,      // the console is on it: left alone
  off,          // the operator keeps it: left alone
  unsafe,       // its group cannot be handed over
  sick,         // it does not answer, or has failed
  quarantined,  // set aside until someone has looked at it
};
std::string_view to_string(CardState state);

struct GpuCard {
  PciDevice pci{};
  GpuFacts facts{};  // as nvidia-smi tells now, else as kept from before the bind
  std::string kind{};
  CardRole role = CardRole::whole;
  CardState state = CardState::unbound;
  std::string reason{};  // of the state, in words; empty for a card that is ready
  std::string hint{};    // what to do about it
};

// A group with its cards.  All of it goes to one VM.
struct CardGroup {
  GpuGroupScan scan{};
  std::vector<GpuCard> cards{};

  // Whether all its cards are `state`.
  [[nodiscard]] bool all(CardState state) const;
};

// What there is and how it stands: the one place that says so.
struct DeviceInventory {
  std::vector<CardGroup> groups{};
  std::vector<PciDevice> switches{};
  std::vector<InventoryInstance> instances{};  // as the MIG inventory has them
  std::vector<std::string> notes{};            // what else is worth knowing
  std::string summary{};                       // what was looked at, in a sentence
};

// What was found out besides the bus, for `assess`.
struct CardEvidence {
  SmiView smi{};
  std::map<std::string, std::string> live_vendors{};  // by address; absent: not asked
  std::vector<XidEvent> xids{};
  std::string boot_id{};  // of the log that they are from
  std::vector<DeviceHolder> holders{};
  std::map<std::string, std::set<std::string>> files{};  // device files, by address
};

// Puts it together.
DeviceInventory assess(const GpuScan& scan, const DeviceFiles& files, const CardEvidence& evidence);

// How closely a card is looked at; each takes longer than the one before.
enum class InventoryDepth {
  bus,  // what the bus and the files of ours say
  use,  // also whether it answers, what the kernel's log says of it, and who has it open
  all,  // also what nvidia-smi says
};

struct InventoryOptions {
  std::vector<std::string> vendors{"10de"};
  InventoryDepth depth = InventoryDepth::all;
};

// Reads all of it.  Only the files of ours can make it fail.
Result<DeviceInventory> read_inventory(Host& host, const DevicePaths& paths,
                                       const InventoryOptions& options);

// "looked at 31 PCI devices under /sys/bus/pci/devices: 2 of vendor 10de: ..."
std::string scan_words(const GpuScan& scan, const std::vector<std::string>& vendors);

}  // namespace fuse
