#include <algorithm>

#include "base/text.h"
#include "hostmode/mig/mig_apply.h"
#include "hostmode/mig/mig_undo.h"
#include "hostmode/mig/vgpu_host.h"

namespace fuse {

namespace {

MigInstanceView view_of(const MigCard& card, const GpuInstance& instance) {
  return {.card = card.address, .gpu = card.uuid, .instance = instance};
}

// The number of the GPU instance in the UUID that drivers before 470 give:
// MIG-GPU-<uuid>/<instance>/<compute instance>.
bool is_old_uuid_of(const MigInstanceView& view, const std::string& uuid) {
  return uuid.starts_with(cat("MIG-", view.gpu, '/', view.instance.id, '/'));
}

Result<void> release(Host& host, const DevicePaths& paths, const MigInstanceView& view,
                     const KernelWrites& writes) {
  auto layout = read_layout(host, paths);
  if (!layout) return layout.error();
  auto files = read_device_files(host, paths);
  if (!files) return files.error();
  std::erase_if(*layout, [&](const LayoutEntry& entry) {
    return entry.gpu == view.gpu && entry.start == view.instance.start &&
           entry.profile == view.instance.name;
  });
  std::erase_if(files->instances,
                [&](const InventoryInstance& line) { return line.uuid == view.device; });
  // Forgotten first, so that no VM is given it any more.
  if (auto written = write_mig_inventory(host, paths, files->instances); !written) return written;
  if (auto written = write_layout(host, paths, *layout); !written) return written;
  if (!view.path.empty()) {
    if (auto gone = remove_vgpu(host, view.path, writes); !gone) return gone;
  }
  if (auto gone = destroy_instance(host, {.address = view.card}, view.instance.id); !gone) {
    return gone;
  }
  return end_change(host, paths);
}

// What VMs call it, where its device is and who has that open.
void add_device(Host& host, MigInstanceView& view, const std::vector<LayoutEntry>& layout,
                const std::vector<InventoryInstance>& lines) {
  const auto entry = std::ranges::find_if(layout, [&](const LayoutEntry& known) {
    return known.gpu == view.gpu && known.start == view.instance.start &&
           known.profile == view.instance.name;
  });
  if (entry == layout.end()) return;
  view.device = entry->device;
  for (const InventoryInstance& line : lines) {
    if (line.uuid == view.device && has_vgpu(host, line.path)) view.path = line.path;
  }
  if (!view.path.empty()) view.holders = vgpu_holders(host, view.path);
}

}  // namespace

Result<std::vector<MigInstanceView>> list_mig(Host& host, const DevicePaths& paths) {
  const auto inventory = read_inventory(host, paths, {});
  if (!inventory) return inventory.error();
  const auto layout = read_layout(host, paths);
  if (!layout) return layout.error();
  const auto cards = read_mig_cards(host, *inventory);
  if (!cards) return cards.error();
  std::vector<MigInstanceView> views;
  for (const MigCard& card : *cards) {
    if (card.instances.empty()) continue;
    const auto uuids = mig_uuids(host, card);
    for (const GpuInstance& instance : card.instances) {
      MigInstanceView view = view_of(card, instance);
      if (const auto uuid = uuids.find(instance.id); uuid != uuids.end()) view.mig = uuid->second;
      add_device(host, view, *layout, inventory->instances);
      views.push_back(std::move(view));
    }
  }
  return views;
}

Result<void> destroy_mig(Host& host, const DevicePaths& paths, const std::string& uuid,
                         const KernelWrites& writes) {
  if (auto undone = undo_change(host, paths, writes); !undone) return undone;
  const auto views = list_mig(host, paths);
  if (!views) return views.error();
  const auto view = std::ranges::find_if(*views, [&](const MigInstanceView& known) {
    return known.device == uuid || known.mig == uuid || is_old_uuid_of(known, uuid);
  });
  if (uuid.empty() || view == views->end()) {
    return Error{ErrorCode::not_found,
                 cat("no MIG instance here is ", uuid),
                 {{"hint", "which there are: fuse agent mig list"}}};
  }
  if (!view->holders.empty()) {
    return Error{ErrorCode::conflict,
                 cat(uuid, " is in use: ", holder_words(view->holders)),
                 {{"hint", "end the VM that has it: fuse ps"}}};
  }
  MigJournal journal{.drop = {{view->card, {view->instance.id}}}};
  if (!view->path.empty()) journal.devices.insert(view->path);
  if (auto begun = begin_change(host, paths, journal); !begun) return begun;
  return release(host, paths, *view, writes);
}

}  // namespace fuse
