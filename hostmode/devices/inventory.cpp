#include "hostmode/devices/inventory.h"

#include <algorithm>

#include "base/text.h"
#include "hostmode/devices/card_verdict.h"
#include "hostmode/devices/gpu_models.h"

namespace fuse {

namespace {

GpuFacts facts_of(const SmiGpu& gpu) {
  return {.bus_id = gpu.address,
          .uuid = gpu.uuid,
          .model = gpu.model,
          .memory_mb = gpu.memory_mb,
          .driver_version = gpu.driver_version,
          .compute_cap = gpu.compute_cap,
          .mig_mode = gpu.mig_current};
}

// What the inventory's line for that card says, by its address or, in the files
// of others, by its place in the line.
GpuFacts facts_in(const std::vector<InventoryGroup>& groups, const std::string& address) {
  for (const InventoryGroup& group : groups) {
    if (std::ranges::find(group.slots, address) == group.slots.end()) continue;
    for (const GpuFacts& facts : group.gpus) {
      if (same_card(facts.bus_id, address)) return facts;
    }
    const bool only = group.gpus.size() == 1 && group.count == 1 && group.gpus[0].bus_id.empty();
    if (only && group.slots.front() == address) return group.gpus.front();
  }
  return {};
}

GpuFacts known_facts(const std::string& address, const DeviceFiles& files, const SmiView& smi) {
  if (const SmiGpu* const gpu = smi.find(address)) return facts_of(*gpu);
  if (const auto kept = files.facts.find(address);
      kept != files.facts.end() && !kept->second.gpu.empty()) {
    return kept->second.gpu;
  }
  return facts_in(files.groups, address);
}

CardRole role_of(const std::string& address, const DeviceFiles& files) {
  const auto said = files.roles.find(address);
  return said == files.roles.end() ? CardRole::whole : said->second;
}

CardGroup group_of(const GpuGroupScan& scan, const DeviceFiles& files,
                   const CardEvidence& evidence) {
  CardGroup group{.scan = scan};
  for (const PciDevice* const gpu : scan.gpus()) {
    GpuCard card{.pci = *gpu,
                 .facts = known_facts(gpu->address, files, evidence.smi),
                 .role = role_of(gpu->address, files)};
    card.kind = kind_of_card(card.facts.model, gpu->vendor, gpu->device);
    if (card.facts.model.empty()) card.facts.model = model_by_id(gpu->vendor, gpu->device);
    group.cards.push_back(std::move(card));
  }
  judge_group(group, files, evidence);
  return group;
}

std::vector<std::string> notes_of(const DeviceInventory& inventory, const GpuScan& scan,
                                  const CardEvidence& evidence) {
  std::vector<std::string> notes;
  for (const std::string& remark : evidence.smi.remarks) {
    notes.push_back(cat("nvidia-smi says: ", remark));
  }
  if (!scan.switches.empty()) {
    notes.push_back(cat(scan.switches.size(),
                        " NVSwitches stay with this host: NVLink between cards in a VM needs a "
                        "partition of the fabric manager"));
  }
  if (scan.unreadable > 0) notes.push_back(cat(scan.unreadable, " PCI devices could not be read"));
  for (const CardGroup& group : inventory.groups) {
    for (const GpuCard& card : group.cards) {
      for (const PciBar& bar : card.pci.bars) {
        if (bar.assigned || !bar.memory) continue;
        notes.push_back(cat(card.pci.address, ": BAR ", bar.index,
                            " has no address: switch on \"Above 4G Decoding\" in the firmware"));
        break;
      }
    }
  }
  return notes;
}

CardEvidence gather(Host& host, const GpuScan& scan, InventoryDepth depth) {
  CardEvidence evidence;
  if (depth == InventoryDepth::bus) return evidence;
  if (depth == InventoryDepth::all) evidence.smi = query_smi(host);
  if (const auto log = read_kernel_log(host)) evidence.xids = parse_xids(*log);
  if (const auto id = host.read_file("/proc/sys/kernel/random/boot_id")) {
    evidence.boot_id = trim(*id);
  }
  std::set<std::string> all;
  for (const GpuGroupScan& group : scan.groups) {
    for (const PciDevice* const gpu : group.gpus()) {
      const auto vendor = read_live_vendor(host, gpu->address);
      if (vendor) evidence.live_vendors[gpu->address] = *vendor;
      evidence.files[gpu->address] = device_files_of(host, *gpu);
      all.insert(evidence.files[gpu->address].begin(), evidence.files[gpu->address].end());
    }
  }
  evidence.holders = find_holders(host, all);
  return evidence;
}

std::string describe(const PciDevice& gpu) {
  return cat(gpu.address, " (", gpu.vendor, ':', gpu.device, ", ",
             gpu.driver.empty() ? "no driver" : cat("driver ", gpu.driver), ", ",
             gpu.group.empty() ? "no IOMMU group" : cat("IOMMU group ", gpu.group), ")");
}

}  // namespace

std::string_view to_string(CardState state) {
  switch (state) {
    case CardState::ready:
      return "ready";
    case CardState::unbound:
      return "unbound";
    case CardState::in_use:
      return "in-use";
    case CardState::mig:
      return "mig";
    case CardState::display:
      return "display";
    case CardState::off:
      return "off";
    case CardState::unsafe:
      return "unsafe";
    case CardState::sick:
      return "sick";
    case CardState::quarantined:
      break;
  }
  return "quarantined";
}

bool CardGroup::all(CardState state) const {
  return std::ranges::all_of(cards, [&](const GpuCard& card) { return card.state == state; });
}

DeviceInventory assess(const GpuScan& scan, const DeviceFiles& files,
                       const CardEvidence& evidence) {
  DeviceInventory inventory{.switches = scan.switches, .instances = files.instances};
  for (const GpuGroupScan& group : scan.groups) {
    inventory.groups.push_back(group_of(group, files, evidence));
  }
  inventory.notes = notes_of(inventory, scan, evidence);
  return inventory;
}

Result<DeviceInventory> read_inventory(Host& host, const DevicePaths& paths,
                                       const InventoryOptions& options) {
  const auto files = read_device_files(host, paths);
  if (!files) return files.error();
  const GpuScan scan = scan_gpus(host, options.vendors);
  DeviceInventory inventory = assess(scan, *files, gather(host, scan, options.depth));
  inventory.summary = scan_words(scan, options.vendors);
  return inventory;
}

std::string scan_words(const GpuScan& scan, const std::vector<std::string>& vendors) {
  if (scan.no_bus) return cat("could not look at ", pci_devices_dir, ": ", scan.no_bus->message);
  std::vector<std::string> found;
  for (const GpuGroupScan& group : scan.groups) {
    for (const PciDevice* const gpu : group.gpus()) found.push_back(describe(*gpu));
  }
  const std::string of_vendors = cat("of vendor ", join(vendors, " or "));
  std::string words =
      cat("looked at ", scan.looked_at, " PCI devices under ", pci_devices_dir, ": ");
  if (found.empty()) {
    words += cat("no display controller ", of_vendors);
  } else {
    words += cat(found.size(), ' ', of_vendors, ": ", join(found, ", "));
  }
  if (scan.unreadable != 0) words += cat("; ", scan.unreadable, " could not be read");
  return words;
}

}  // namespace fuse
