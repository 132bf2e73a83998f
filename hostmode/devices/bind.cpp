#include "hostmode/devices/bind.h"

#include <algorithm>
#include <array>
#include <set>

#include "base/command.h"
#include "base/quote.h"
#include "base/text.h"
#include "hostmode/devices/pci_address.h"

namespace fuse {

namespace {

using Kind = GroupOutcome::Kind;

GroupOutcome outcome_of(const CardGroup& group, Kind kind) {
  GroupOutcome outcome{.group = group.scan.number, .kind = kind};
  for (const GpuCard& card : group.cards) outcome.slots.push_back(card.pci.address);
  return outcome;
}

bool has_member(const CardGroup& group, const std::string& address) {
  return std::ranges::any_of(group.scan.members, [&](const GroupMember& member) {
    return member.device.address == address;
  });
}

bool is_left_alone(CardState state) {
  static constexpr std::array states = {CardState::off, CardState::display, CardState::mig};
  return std::ranges::find(states, state) != states.end();
}

Result<const CardGroup*> find_group(const DeviceInventory& inventory, const std::string& slot) {
  const auto address = pci_address(slot);
  for (const CardGroup& group : inventory.groups) {
    if (address && has_member(group, *address)) return &group;
  }
  return Error{ErrorCode::not_found,
               address ? cat("no GPU's IOMMU group has ", *address)
                       : cat(in_quotes(slot), " is not a PCI address, as in 0000:41:00.0"),
               {{"hint", "which there are: fuse agent probe"}}};
}

// Loads vfio-pci where the kernel has it as a module.
Result<void> require_vfio(Host& host) {
  const fs::path driver = fs::path(pci_drivers_dir) / vfio_driver;
  if (host.list_dir(driver)) return {};
  const auto loaded = require_command(host, {.argv = {"modprobe", std::string(vfio_driver)}});
  if (host.list_dir(driver)) return {};
  return Error{
      ErrorCode::unavailable,
      cat("this kernel has no vfio-pci driver", loaded ? "" : cat(": ", loaded.error().message)),
      {{"hint", "load it as root: modprobe vfio-pci"}}};
}

// Merges what is known of the group's functions now into what is kept.
void keep_facts(std::map<std::string, KeptFacts>& kept, const CardGroup& group) {
  for (const GroupMember& member : group.scan.members) {
    const bool moves = member.kind == MemberKind::gpu || member.kind == MemberKind::companion;
    if (!moves) continue;
    KeptFacts& facts = kept[member.device.address];
    const bool native = !member.device.driver.empty() && member.device.driver != vfio_driver;
    if (native) facts.driver = member.device.driver;
  }
  for (const GpuCard& card : group.cards) {
    if (!card.facts.uuid.empty()) kept[card.pci.address].gpu = card.facts;
  }
}

// Names who keeps a function that its driver did not let go, and sets the card
// aside: what becomes of it is not known.
Error explain_stuck(Host& host, const DevicePaths& paths, const CardGroup& group, Error error) {
  const auto stuck = error.details.find("stuck");
  if (stuck == error.details.end()) return error;
  for (const GroupMember& member : group.scan.members) {
    if (member.device.address != stuck->second) continue;
    const auto holders = find_holders(host, device_files_of(host, member.device));
    if (holders.empty()) continue;
    error.message += cat("; ", holder_words(holders));
    error.details["hint"] = holder_hint(holders, member.device.address);
  }
  for (const GpuCard& card : group.cards) {
    const auto noted =
        quarantine_card(host, paths, card.pci.address,
                        cat(stuck->second, " was being taken from its driver, which hung"));
    if (!noted) error.message += cat("; and it could not be set aside: ", noted.error().message);
  }
  return error;
}

GroupOutcome failed(const CardGroup& group, const Error& error) {
  GroupOutcome outcome = outcome_of(group, Kind::failed);
  outcome.reason = error.message;
  if (const auto hint = error.details.find("hint"); hint != error.details.end()) {
    outcome.hint = hint->second;
  }
  return outcome;
}

class Binder {
 public:
  Binder(Host& host, const DevicePaths& paths, const BindOptions& options)
      : host_(host), paths_(paths), options_(options) {}

  Result<GroupOutcome> bind(const CardGroup& group, std::map<std::string, KeptFacts>& kept) {
    if (auto objection = bind_objection(group)) return *std::move(objection);
    keep_facts(kept, group);
    // Once the card is moved nobody can tell any more.
    if (auto written = write_kept_facts(host_, paths_, kept); !written) return written.error();
    const auto moves = bind_moves(group);
    if (moves.empty()) return outcome_of(group, Kind::already);
    if (auto there = require_vfio(host_); !there) return failed(group, there.error());
    if (auto moved = move_drivers(host_, moves, options_.writes); !moved) {
      return failed(group, explain_stuck(host_, paths_, group, moved.error()));
    }
    return outcome_of(group, Kind::bound);
  }

  Result<void> write_inventory() {
    const auto now = read_inventory(host_, paths_, options_.inventory);
    if (!now) return now.error();
    const auto files = read_device_files(host_, paths_);
    if (!files) return files.error();
    const auto lines = updated_lines(files->groups, *now, host_);
    return write_vfio_inventory(host_, paths_, lines);
  }

 private:
  Host& host_;
  const DevicePaths& paths_;
  const BindOptions& options_;
};

Result<void> check_free(Host& host, const CardGroup& group) {
  std::set<std::string> files;
  for (const PciDevice* const device : group.scan.endpoints()) {
    files.merge(device_files_of(host, *device));
  }
  const auto holders = find_holders(host, files);
  if (holders.empty()) return {};
  return Error{ErrorCode::conflict,
               cat("IOMMU group ", group.scan.number, " is in use: ", holder_words(holders)),
               {{"hint", "end the VM that has it: fuse ps"}}};
}

// The functions on vfio-pci, each to the driver that it had.  Companions first: the
// reverse of binding.
std::vector<DriverMove> release_moves(Host& host, const CardGroup& group,
                                      const std::map<std::string, KeptFacts>& kept) {
  std::vector<DriverMove> moves;
  for (const MemberKind kind : {MemberKind::companion, MemberKind::gpu}) {
    for (const GroupMember& member : group.scan.members) {
      const std::string& address = member.device.address;
      if (member.kind != kind || current_driver(host, address) != vfio_driver) continue;
      const auto facts = kept.find(address);
      moves.push_back({address, facts == kept.end() ? "" : facts->second.driver});
    }
  }
  return moves;
}

bool is_line_of(const InventoryGroup& line, const CardGroup& group) {
  return std::ranges::any_of(
      line.slots, [&](const std::string& address) { return has_member(group, address); });
}

Result<std::vector<const CardGroup*>> wanted_groups(const DeviceInventory& inventory,
                                                    const std::vector<std::string>& slots) {
  std::vector<const CardGroup*> wanted;
  for (const std::string& slot : slots) {
    const auto group = find_group(inventory, slot);
    if (!group) return group.error();
    if (std::ranges::find(wanted, *group) == wanted.end()) wanted.push_back(*group);
  }
  if (!slots.empty()) return wanted;
  for (const CardGroup& group : inventory.groups) wanted.push_back(&group);
  return wanted;
}

}  // namespace

std::optional<GroupOutcome> bind_objection(const CardGroup& group) {
  for (const GpuCard& card : group.cards) {
    if (card.state == CardState::ready || card.state == CardState::unbound) continue;
    const bool bound = card.pci.driver == vfio_driver && bind_moves(group).empty();
    // In the hands of a VM, where it belongs.
    if (card.state == CardState::in_use && bound) continue;
    GroupOutcome outcome =
        outcome_of(group, is_left_alone(card.state) ? Kind::left_alone : Kind::failed);
    outcome.reason = cat(card.pci.address, ": ", card.reason);
    outcome.hint = card.hint;
    return outcome;
  }
  return std::nullopt;
}

std::vector<DriverMove> bind_moves(const CardGroup& group) {
  std::vector<DriverMove> moves;
  for (const MemberKind kind : {MemberKind::gpu, MemberKind::companion}) {
    for (const GroupMember& member : group.scan.members) {
      if (member.kind != kind || member.device.driver == vfio_driver) continue;
      moves.push_back({member.device.address, std::string(vfio_driver)});
    }
  }
  return moves;
}

InventoryGroup inventory_line(const CardGroup& group) {
  InventoryGroup line{.count = group.cards.size(), .kind = group.cards.front().kind};
  for (const PciDevice* const device : group.scan.endpoints()) {
    line.slots.push_back(device->address);
  }
  for (const GpuCard& card : group.cards) {
    GpuFacts facts = card.facts;
    facts.bus_id = card.pci.address;
    line.gpus.push_back(std::move(facts));
  }
  return line;
}

std::vector<InventoryGroup> updated_lines(const std::vector<InventoryGroup>& lines,
                                          const DeviceInventory& now, Host& host) {
  std::vector<InventoryGroup> out;
  std::vector<std::string> known;
  for (const CardGroup& group : now.groups) {
    for (const GroupMember& member : group.scan.members) known.push_back(member.device.address);
    const bool bound = !group.scan.number.empty() && bind_moves(group).empty();
    const auto objection = bind_objection(group);
    if (bound && !objection) out.push_back(inventory_line(group));
  }
  // Cards of vendors that this look did not cover.
  for (const InventoryGroup& line : lines) {
    const std::string& slot = line.slots.front();
    if (std::ranges::find(known, slot) != known.end()) continue;
    if (current_driver(host, slot) == vfio_driver) out.push_back(line);
  }
  return out;
}

Result<std::vector<GroupOutcome>> bind_devices(Host& host, const DevicePaths& paths,
                                               const BindOptions& options) {
  const auto inventory = read_inventory(host, paths, options.inventory);
  if (!inventory) return inventory.error();
  auto files = read_device_files(host, paths);
  if (!files) return files.error();
  const auto wanted = wanted_groups(*inventory, options.slots);
  if (!wanted) return wanted.error();
  Binder binder(host, paths, options);
  std::vector<GroupOutcome> outcomes;
  for (const CardGroup* const group : *wanted) {
    auto outcome = binder.bind(*group, files->facts);
    if (!outcome) return outcome.error();
    const bool moved = outcome->kind == Kind::bound;
    outcomes.push_back(std::move(*outcome));
    if (!moved) continue;
    // After each group, so that a crash loses none that is moved.
    if (auto written = binder.write_inventory(); !written) return written.error();
  }
  if (auto written = binder.write_inventory(); !written) return written.error();
  return outcomes;
}

Result<GroupOutcome> unbind_device(Host& host, const DevicePaths& paths, const std::string& slot,
                                   const BindOptions& options) {
  const auto inventory = read_inventory(host, paths, options.inventory);
  if (!inventory) return inventory.error();
  const auto files = read_device_files(host, paths);
  if (!files) return files.error();
  const auto found = find_group(*inventory, slot);
  if (!found) return found.error();
  const CardGroup& group = **found;
  if (auto free = check_free(host, group); !free) return free.error();
  const auto moves = release_moves(host, group, files->facts);
  if (moves.empty()) return outcome_of(group, Kind::already);
  // Out of the inventory before it is out of vfio-pci, so that no VM is given it.
  std::vector<InventoryGroup> left = files->groups;
  std::erase_if(left, [&](const InventoryGroup& line) { return is_line_of(line, group); });
  if (auto written = write_vfio_inventory(host, paths, left); !written) return written.error();
  if (auto moved = move_drivers(host, moves, options.writes); !moved) {
    Error error = explain_stuck(host, paths, group, moved.error());
    if (auto written = write_vfio_inventory(host, paths, files->groups); !written) {
      error.message += cat("; and the inventory could not be put back: ", written.error().message);
    }
    return error;
  }
  return outcome_of(group, Kind::bound);
}

}  // namespace fuse
