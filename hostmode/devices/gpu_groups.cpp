#include "hostmode/devices/gpu_groups.h"

#include <algorithm>
#include <map>

#include "base/text.h"
#include "hostmode/devices/pci_address.h"

namespace fuse {

namespace {

bool is_card(const PciDevice& device, const std::vector<std::string>& vendors) {
  return is_display_class(device.pci_class) && device.physical.empty() &&
         std::ranges::find(vendors, device.vendor) != vendors.end();
}

bool is_switch(const PciDevice& device) {
  return device.vendor == "10de" && device.pci_class == 0x0680;
}

// What a first look at the bus says.
struct Bus {
  std::vector<std::string> candidates{};  // that may be a GPU or an NVSwitch
  std::map<std::string, std::vector<std::string>> groups{};
};

Bus look_around(Host& host, const std::vector<std::string>& addresses,
                const std::vector<std::string>& vendors, std::size_t& unreadable) {
  Bus bus;
  for (const std::string& address : addresses) {
    const auto group = host.read_link(fs::path(pci_devices_dir) / address / "iommu_group");
    if (group) bus.groups[group->filename().native()].push_back(address);
    const auto identity = read_pci_identity(host, address);
    if (!identity) {
      ++unreadable;
      continue;
    }
    const bool of_vendor = std::ranges::find(vendors, identity->vendor) != vendors.end();
    const bool display = is_display_class(identity->pci_class) && of_vendor;
    if (display || identity->pci_class == 0x0680) bus.candidates.push_back(address);
  }
  return bus;
}

// Companions share the slot of a card: a sound chip elsewhere is the host's.
void tell_kinds(GpuGroupScan& group, const std::vector<std::string>& vendors) {
  std::vector<std::string> slots;
  for (GroupMember& member : group.members) {
    if (!is_card(member.device, vendors)) continue;
    member.kind = MemberKind::gpu;
    slots.push_back(pci_slot(member.device.address).value_or(""));
  }
  for (GroupMember& member : group.members) {
    if (member.kind == MemberKind::gpu) continue;
    const std::string slot = pci_slot(member.device.address).value_or("-");
    const bool beside = std::ranges::find(slots, slot) != slots.end();
    if (is_bridge_class(member.device.pci_class)) {
      member.kind = MemberKind::bridge;
    } else if (beside && is_companion_class(member.device.pci_class)) {
      member.kind = MemberKind::companion;
    }
  }
}

GpuGroupScan read_group(Host& host, const PciDevice& card, const Bus& bus,
                        const std::vector<std::string>& vendors) {
  GpuGroupScan group{.number = card.group};
  const auto known = bus.groups.find(card.group);
  const std::vector<std::string> addresses =
      card.group.empty() || known == bus.groups.end() ? std::vector{card.address} : known->second;
  for (const std::string& address : addresses) {
    auto device = read_pci_device(host, address);
    if (device) {
      group.members.push_back({.device = std::move(*device)});
    } else {
      group.unreadable.push_back(address);
    }
  }
  tell_kinds(group, vendors);
  return group;
}

std::vector<const PciDevice*> of_kinds(const GpuGroupScan& group, bool companions) {
  std::vector<const PciDevice*> out;
  for (const GroupMember& member : group.members) {
    const bool wanted =
        member.kind == MemberKind::gpu || (companions && member.kind == MemberKind::companion);
    if (wanted) out.push_back(&member.device);
  }
  return out;
}

}  // namespace

std::vector<const PciDevice*> GpuGroupScan::gpus() const {
  return of_kinds(*this, false);
}

std::vector<const PciDevice*> GpuGroupScan::endpoints() const {
  return of_kinds(*this, true);
}

GpuScan scan_gpus(Host& host, const std::vector<std::string>& vendors) {
  GpuScan scan;
  const auto addresses = host.list_dir(pci_devices_dir);
  if (!addresses) {
    scan.no_bus = addresses.error();
    return scan;
  }
  scan.looked_at = addresses->size();
  const Bus bus = look_around(host, *addresses, vendors, scan.unreadable);
  std::map<std::string, bool> seen;
  for (const std::string& address : bus.candidates) {
    auto device = read_pci_device(host, address);
    if (!device) {
      ++scan.unreadable;
    } else if (is_switch(*device)) {
      scan.switches.push_back(std::move(*device));
    } else if (is_display_class(device->pci_class) && !device->physical.empty()) {
      scan.virtual_functions.push_back(std::move(*device));
    } else if (is_card(*device, vendors)) {
      const std::string key = device->group.empty() ? device->address : device->group;
      if (seen.emplace(key, true).second) {
        scan.groups.push_back(read_group(host, *device, bus, vendors));
      }
    }
  }
  return scan;
}

std::string member_words(const PciDevice& device) {
  const std::string what = is_switch(device) ? "NVSwitch"
                           : !device.physical.empty()
                               ? cat("virtual function of ", fs::path(device.physical).native())
                               : class_words(device.pci_class);
  return cat(device.address, " (", what, ", ", device.vendor, ':', device.device, ", ",
             device.driver.empty() ? "no driver" : cat("driver ", device.driver), ")");
}

}  // namespace fuse
