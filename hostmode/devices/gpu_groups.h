#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/host.h"
#include "hostmode/devices/pci_device.h"

namespace fuse {

// What a function in a GPU's IOMMU group means for handing the group over.
enum class MemberKind {
  gpu,        // a card
  companion,  // audio, USB or USB-C of a card: goes with it
  bridge,     // a host or PCI bridge: stays where it is
  foreign,    // anything else: handing it over would take it from the host
};

struct GroupMember {
  PciDevice device{};
  MemberKind kind = MemberKind::foreign;
};

// An IOMMU group that holds at least one GPU, complete.  The kernel gives away
// nothing smaller.
struct GpuGroupScan {
  std::string number{};                   // empty: a card that is in no group
  std::vector<GroupMember> members{};     // by address
  std::vector<std::string> unreadable{};  // members that could not be looked at

  [[nodiscard]] std::vector<const PciDevice*> gpus() const;
  // The functions that go to a VM: GPUs and their companions.
  [[nodiscard]] std::vector<const PciDevice*> endpoints() const;
};

// A look at the whole bus.
struct GpuScan {
  std::vector<GpuGroupScan> groups{};  // by the address of their first GPU
  std::vector<PciDevice> switches{};   // NVSwitches: they stay with the host's fabric manager
  std::vector<PciDevice> virtual_functions{};  // of GPUs: no cards, though they look like ones
  std::size_t looked_at = 0;
  std::size_t unreadable = 0;
  std::optional<Error> no_bus{};  // the bus itself could not be listed
};

// Finds the GPUs of `vendors` ("10de") by class, with their IOMMU groups.
GpuScan scan_gpus(Host& host, const std::vector<std::string>& vendors);

// "0000:41:00.1 (audio, 10de:1aef, driver snd_hda_intel)"
std::string member_words(const PciDevice& device);

}  // namespace fuse
