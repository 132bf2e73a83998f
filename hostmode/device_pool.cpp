#include "hostmode/device_pool.h"

#include <algorithm>
#include <optional>
#include <set>

#include "base/text.h"
#include "hostmode/devices/pci_address.h"
#include "hostmode/devices/smi_csv.h"

namespace fuse {

namespace {

const CardGroup* find_group(const DeviceInventory& inventory, const InventoryGroup& line) {
  for (const CardGroup& group : inventory.groups) {
    for (const GpuCard& card : group.cards) {
      if (std::ranges::find(line.slots, card.pci.address) != line.slots.end()) return &group;
    }
  }
  return nullptr;
}

// A line whose cards are not seen stands: it is the operator's word, and a VM
// that is to have them finds out.
bool is_fit(const CardGroup* group) {
  return group == nullptr || std::ranges::all_of(group->cards, [](const GpuCard& card) {
           return card.state == CardState::ready || card.state == CardState::in_use;
         });
}

// The facts of the line's GPU number `i`, with what the bus says of it.
GpuDevice device_of(const InventoryGroup& line, std::size_t i, const CardGroup* group) {
  const GpuCard* const card =
      group != nullptr && i < group->cards.size() ? &group->cards[i] : nullptr;
  GpuFacts facts = i < line.gpus.size() ? line.gpus[i] : GpuFacts();
  if (card != nullptr && facts.empty()) facts = card->facts;
  const bool has_mig = !is_no_value(facts.mig_mode);
  GpuDevice device{.uuid = facts.uuid,
                   .model = facts.model,
                   .pci_bus_id = facts.bus_id,
                   .memory_mb = facts.memory_mb,
                   .driver_version = facts.driver_version,
                   .compute_cap = facts.compute_cap,
                   .mig_capable = has_mig,
                   .mig_mode = facts.mig_mode};
  if (device.pci_bus_id.empty()) {
    device.pci_bus_id = card != nullptr ? card->pci.address : line.slots.front();
  }
  if (group != nullptr) device.iommu_group = group->scan.number;
  if (card != nullptr) device.numa_node = card->pci.numa;
  return device;
}

}  // namespace

DevicePool make_pool(const DeviceFiles& files, const DeviceInventory& inventory) {
  DevicePool pool{.instances = files.instances, .summary = inventory.summary};
  for (const InventoryGroup& line : files.groups) {
    const CardGroup* const seen = find_group(inventory, line);
    if (!is_fit(seen)) continue;
    // A group that the bus does not show goes by its first function.
    GpuGroup group{.group = seen != nullptr ? seen->scan.number : line.slots.front(),
                   .kind = line.kind,
                   .slots = line.slots};
    for (std::size_t i = 0; i < line.count; ++i) {
      GpuDevice device = device_of(line, i, seen);
      device.index = static_cast<std::int32_t>(pool.devices.size());
      group.gpus.push_back({.uuid = device.uuid,
                            .model = device.model,
                            .slot = pci_address(device.pci_bus_id).value_or("")});
      if (device.numa_node) group.numa = device.numa_node;
      pool.devices.push_back(std::move(device));
    }
    if (seen != nullptr && !seen->all(CardState::ready)) pool.open.insert(group.group);
    pool.groups.push_back(std::move(group));
  }
  return pool;
}

namespace {

// The makers of the cards that the inventory names: what the operator wrote there counts,
// whoever made it, and is looked at like any other.
std::vector<std::string> inventory_vendors(Host& host, const std::vector<InventoryGroup>& lines) {
  std::vector<std::string> vendors;
  for (const InventoryGroup& line : lines) {
    for (const std::string& slot : line.slots) {
      auto identity = read_pci_identity(host, slot);
      if (identity && is_display_class(identity->pci_class)) vendors.push_back(identity->vendor);
    }
  }
  return vendors;
}

}  // namespace

Result<DevicePool> read_device_pool(Host& host, const DevicePaths& paths, InventoryDepth depth) {
  InventoryOptions options{.depth = depth};
  if (paths.dir.empty()) {
    return DevicePool{.summary = scan_words(scan_gpus(host, options.vendors), options.vendors)};
  }
  const auto files = read_device_files(host, paths);
  if (!files) return files.error();
  for (std::string& vendor : inventory_vendors(host, files->groups)) {
    if (std::ranges::find(options.vendors, vendor) == options.vendors.end()) {
      options.vendors.push_back(std::move(vendor));
    }
  }
  const auto inventory = read_inventory(host, paths, options);
  if (!inventory) return inventory.error();
  return make_pool(*files, *inventory);
}

namespace {

std::vector<VmDevice> devices_of(const GpuGroup& group) {
  std::vector<VmDevice> devices;
  for (const std::string& slot : group.slots) {
    const auto gpu = std::ranges::find(group.gpus, slot, &InventoryGpu::slot);
    devices.push_back({.kind = "pci",
                       .address = slot,
                       .uuid = gpu == group.gpus.end() ? "" : gpu->uuid,
                       .group = group.group});
  }
  return devices;
}

// A mediated device by its UUID, a virtual function by its address.
VmDevice device_of(const InventoryInstance& instance) {
  const auto address = pci_address(fs::path(instance.path).filename().native());
  return {.kind = address ? "vf" : "mdev",
          .address = address.value_or(instance.uuid),
          .uuid = instance.uuid};
}

}  // namespace

Result<std::vector<VmDevice>> allocate_devices(const CreateVmRequest& request,
                                               const DevicePool& pool,
                                               const std::set<std::string>& taken) {
  std::vector<VmDevice> devices;
  if (!request.gpu_profile.empty() || !request.mig_instance_uuids.empty()) {
    const auto chosen = choose_instances({.count = request.gpus,
                                          .profile = request.gpu_profile,
                                          .kind = request.gpu_kind,
                                          .uuids = request.mig_instance_uuids},
                                         wire_instances(pool.instances), taken);
    if (!chosen) return chosen.error();
    for (const std::size_t i : *chosen) devices.push_back(device_of(pool.instances[i]));
    return devices;
  }
  // By address: a group may have had another number when a record was written.
  std::set<std::string> unavailable = pool.open;
  for (const GpuGroup& group : pool.groups) {
    const bool is_taken = std::ranges::any_of(
        group.slots, [&](const std::string& slot) { return taken.contains(slot); });
    if (is_taken) unavailable.insert(group.group);
  }
  const auto chosen = choose_groups(
      {.count = request.gpus, .kind = request.gpu_kind, .uuids = request.gpu_device_uuids},
      pool.groups, unavailable);
  if (!chosen) return chosen.error();
  for (const std::size_t i : *chosen) {
    const auto of_group = devices_of(pool.groups[i]);
    devices.insert(devices.end(), of_group.begin(), of_group.end());
  }
  return devices;
}

void add_devices(HostCapacity& capacity, const DevicePool& pool) {
  std::set<std::string> kinds;
  for (const GpuGroup& group : pool.groups) kinds.insert(group.kind);
  for (const InventoryInstance& instance : pool.instances) {
    kinds.insert(instance.kind);
    ++capacity.mig_profiles[instance.profile];
  }
  capacity.gpus = static_cast<std::int32_t>(pool.devices.size());
  if (kinds.size() == 1) capacity.gpu_kind = *kinds.begin();
  capacity.gpu_devices = pool.devices;
  capacity.mig_instances = wire_instances(pool.instances);
  capacity.gpu_summary = pool.summary;
}

std::vector<MigInstance> wire_instances(const std::vector<InventoryInstance>& instances) {
  std::vector<MigInstance> out;
  out.reserve(instances.size());
  for (const InventoryInstance& instance : instances) {
    out.push_back({.uuid = instance.uuid,
                   .profile = instance.profile,
                   .kind = instance.kind,
                   .parent_gpu_uuid = instance.parent});
  }
  return out;
}

}  // namespace fuse
