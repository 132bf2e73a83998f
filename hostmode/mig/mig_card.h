#pragma once

#include <string>
#include <vector>

#include "base/host.h"
#include "base/result.h"
#include "hostmode/devices/inventory.h"
#include "hostmode/mig/layout_plan.h"
#include "hostmode/mig/smi_mig.h"

namespace fuse {

// A card that can be cut into instances, as nvidia-smi shows it.
struct MigCard {
  std::string address{};
  std::string uuid{};
  std::string device{};  // PCI device id
  std::string kind{};
  bool enabled = false;                   // MIG mode is on
  CardSlots slots{};                      // what can be made of it, and what was
  std::vector<GpuInstance> instances{};   // in MIG mode
  std::vector<ComputeInstance> inside{};  // in them
};

// Reads a card in MIG mode, by its address alone.
Result<void> read_slots(Host& host, MigCard& card);

// The cards of the inventory that have MIG and that nvidia-smi sees, those in MIG
// mode first; each with its slots, where they can be told.
Result<std::vector<MigCard>> read_mig_cards(Host& host, const DeviceInventory& inventory);

// Switches MIG mode and sees to it that it is switched, with a reset of that card
// alone where it takes one.  conflict, naming who has the card open, when it cannot
// be reset.
Result<void> switch_mig_mode(Host& host, const MigCard& card, bool on);

// Makes an instance with a compute instance over all of it, at that place; its id.
// When half of it fails, that half is taken away again.
Result<int> create_instance(Host& host, const MigCard& card, const SlotProfile& profile, int start);
// Takes away what is inside and then itself; success when it is gone.
Result<void> destroy_instance(Host& host, const MigCard& card, int instance);

// MIG devices' UUIDs by the id of their GPU instance, where nvidia-smi tells.
std::map<int, std::string> mig_uuids(Host& host, const MigCard& card);

}  // namespace fuse
