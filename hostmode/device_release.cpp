#include "hostmode/device_release.h"

#include <algorithm>
#include <set>

#include "base/text.h"
#include "hostmode/devices/holders.h"
#include "hostmode/devices/pci_device.h"

namespace fuse {

namespace {

fs::path dir_of(const VmDevice& device) {
  const bool mdev = device.kind == "mdev";
  return fs::path(mdev ? "/sys/bus/mdev/devices" : pci_devices_dir) / device.address;
}

// The number of its group now: the one in a record may be from before the host was
// restarted.
std::string group_now(Host& host, const VmDevice& device) {
  const auto link = host.read_link(dir_of(device) / "iommu_group");
  return link ? link->filename().native() : "";
}

std::set<std::string> files_of(Host& host, const VmDevice& device) {
  if (device.kind == "mdev") {
    const std::string group = group_now(host, device);
    return group.empty() ? std::set<std::string>() : std::set{cat("/dev/vfio/", group)};
  }
  const auto function = read_pci_device(host, device.address);
  return function ? device_files_of(host, *function) : std::set<std::string>();
}

// Who still has one of the devices open, in words.
std::string still_held(Host& host, const std::vector<VmDevice>& devices) {
  std::set<std::string> files;
  for (const VmDevice& device : devices) files.merge(files_of(host, device));
  return holder_words(find_holders(host, files));
}

// Why a device that its driver clears is not sound, or "".
std::string missing(Host& host, const VmDevice& device) {
  const fs::path dir = dir_of(device);
  return host.list_dir(dir) ? "" : cat(dir.native(), " is gone");
}

std::vector<ReleasedDevice> take_back(Host& host, const std::vector<VmDevice>& devices,
                                      const ResetTools& tools) {
  std::vector<ReleasedDevice> out;
  if (const std::string held = still_held(host, devices); !held.empty()) {
    for (const VmDevice& device : devices) out.push_back({device.address, "", held});
    return out;
  }
  std::vector<ResetTarget> cards;
  for (const VmDevice& device : devices) {
    if (device.kind == "pci") {
      cards.push_back({device.address, group_now(host, device)});
    } else {
      out.push_back({device.address, "", missing(host, device)});
    }
  }
  for (ResetOutcome& outcome : reset_functions(host, cards, tools)) {
    out.push_back(
        {std::move(outcome.address), std::move(outcome.method), std::move(outcome.problem)});
  }
  return out;
}

ReleaseGrade grade_of(const std::vector<ReleasedDevice>& devices) {
  const auto is_unsound = [](const ReleasedDevice& device) { return !device.problem.empty(); };
  const auto is_reset = [](const ReleasedDevice& device) { return !device.reset.empty(); };
  if (std::ranges::any_of(devices, is_unsound)) return ReleaseGrade::quarantined;
  return std::ranges::all_of(devices, is_reset) ? ReleaseGrade::reset : ReleaseGrade::not_reset;
}

bool is_display(Host& host, const std::string& address) {
  const auto identity = read_pci_identity(host, address);
  return identity && is_display_class(identity->pci_class);
}

// Sets aside the cards of the group that an unsound function is in, since a card is known
// by its own address; the function itself where no card is seen.
Result<void> set_aside(Host& host, const DevicePaths& paths, const std::vector<VmDevice>& devices,
                       const ReleasedDevice& unsound) {
  const auto own = std::ranges::find(devices, unsound.address, &VmDevice::address);
  if (own == devices.end() || own->kind != "pci") return {};
  std::vector<std::string> cards;
  for (const VmDevice& device : devices) {
    const bool together = device.kind == "pci" && device.group == own->group;
    if (together && is_display(host, device.address)) cards.push_back(device.address);
  }
  if (cards.empty()) cards.push_back(unsound.address);
  for (const std::string& card : cards) {
    auto done =
        quarantine_card(host, paths, card, cat(unsound.address, " after a vm: ", unsound.problem));
    if (!done) return done;
  }
  return {};
}

}  // namespace

Result<DeviceRelease> release_devices(Host& host, const DevicePaths& paths,
                                      const std::vector<VmDevice>& devices,
                                      const ResetTools& tools) {
  DeviceRelease release{.devices = take_back(host, devices, tools)};
  release.grade = grade_of(release.devices);
  for (const ReleasedDevice& device : release.devices) {
    if (device.problem.empty()) continue;
    if (auto done = set_aside(host, paths, devices, device); !done) return done.error();
  }
  std::vector<std::string> reset;
  for (const ReleasedDevice& device : release.devices) {
    if (device.problem.empty() && !device.reset.empty()) reset.push_back(device.address);
  }
  // Should it not be noted, an old complaint of the kernel's keeps the card from being
  // handed out: the safe side.
  if (!reset.empty()) (void)note_resets(host, paths, reset);
  return release;
}

std::string release_words(const DeviceRelease& release) {
  std::vector<std::string> devices;
  for (const ReleasedDevice& device : release.devices) {
    const std::string how = !device.problem.empty() ? device.problem
                            : device.reset.empty()  ? "as its driver left it"
                                                    : device.reset;
    devices.push_back(cat(device.address, ": ", how));
  }
  return cat(to_string(release.grade), " (", join(devices, ", "), ")");
}

}  // namespace fuse
