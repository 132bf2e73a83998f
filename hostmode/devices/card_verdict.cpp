#include "hostmode/devices/card_verdict.h"

#include <algorithm>
#include <array>
#include <optional>

#include "base/text.h"
#include "hostmode/devices/pci_address.h"

namespace fuse {

namespace {

struct Verdict {
  CardState state = CardState::ready;
  std::string reason{};
  std::string hint{};
};
using Verdicts = std::optional<Verdict>;

// A driver of the host's own, as opposed to none and to those that only hold a
// device for a VM.
bool is_host_driver(std::string_view driver) {
  return !driver.empty() && driver != vfio_driver && driver != "pci-stub";
}

Verdicts set_aside(const GpuCard& card, const DeviceFiles& files) {
  const auto found = files.quarantined.find(card.pci.address);
  if (found == files.quarantined.end()) return std::nullopt;
  return Verdict{CardState::quarantined, found->second,
                 "when it is sound again, remove its line from device-quarantine.txt"};
}

Verdicts not_answering(const GpuCard& card, const CardEvidence& evidence) {
  const auto live = evidence.live_vendors.find(card.pci.address);
  if (live == evidence.live_vendors.end() || live->second == card.pci.vendor) return std::nullopt;
  return Verdict{CardState::sick,
                 cat("its configuration space reads ", live->second, " where its vendor ",
                     card.pci.vendor, " should be: it does not answer"),
                 "only switching this host off and on brings such a card back"};
}

Verdicts kept_by_operator(const GpuCard& card) {
  if (card.role != CardRole::off) return std::nullopt;
  return Verdict{CardState::off, "kept by the operator", "its role is in device-roles.txt"};
}

// An operator who says that the card is to be handed over knows of the console.
Verdicts drives_the_console(const GpuCard& card, const DeviceFiles& files) {
  const bool told = files.roles.contains(card.pci.address);
  if (!card.pci.boot_vga || told || !is_host_driver(card.pci.driver)) return std::nullopt;
  return Verdict{CardState::display,
                 cat("this host's console is on it (driver ", card.pci.driver, ")"),
                 cat("to hand it over all the same, write \"", card.pci.address,
                     " whole\" into device-roles.txt")};
}

Verdicts is_sliced(const GpuCard& card, const CardEvidence& evidence) {
  const SmiGpu* const live = evidence.smi.find(card.pci.address);
  const bool pending = live != nullptr && equal_ignoring_case(live->mig_pending, "enabled");
  if (pending || equal_ignoring_case(card.facts.mig_mode, "enabled")) {
    return Verdict{CardState::mig, "it is in MIG mode", ""};
  }
  if (card.role == CardRole::mig) {
    return Verdict{CardState::mig, "it is meant for MIG instances",
                   "carve them: fuse agent mig apply --profile P=N"};
  }
  return std::nullopt;
}

Verdicts shares_itself(const GpuCard& card) {
  if (card.pci.virtual_functions == 0) return std::nullopt;
  return Verdict{CardState::unsafe,
                 cat("it has ", card.pci.virtual_functions, " virtual functions switched on"),
                 cat("switch them off: sriov-manage -d ", card.pci.address)};
}

// Whether the card was reset since: then it is over.
bool is_over(const XidEvent& event, const GpuCard& card, const DeviceFiles& files,
             const CardEvidence& evidence) {
  const auto reset = files.resets.find(card.pci.address);
  if (reset == files.resets.end() || !event.at) return false;
  return reset->second.boot_id == evidence.boot_id && *event.at < reset->second.seconds;
}

Verdicts has_failed(const GpuCard& card, const DeviceFiles& files, const CardEvidence& evidence) {
  const SmiGpu* const live = evidence.smi.find(card.pci.address);
  if (live != nullptr && !live->complaint.empty()) {
    return Verdict{CardState::sick, cat("nvidia-smi says ", live->complaint, " of it"),
                   cat("reset it: nvidia-smi -r -i ", card.pci.address)};
  }
  const std::string slot = pci_slot(card.pci.address).value_or("");
  for (const XidEvent& event : evidence.xids) {
    if (event.slot != slot || is_over(event, card, files, evidence)) continue;
    return Verdict{CardState::sick,
                   cat("the kernel's log has Xid ", event.xid, " of it",
                       event.words.empty() ? "" : ": ", event.words),
                   "reset it, or restart this host, and look at its log again"};
  }
  return std::nullopt;
}

Verdicts in_bad_company(const CardGroup& group) {
  std::string objection = group_objection(group.scan);
  if (objection.empty()) return std::nullopt;
  const bool no_group = group.scan.number.empty();
  return Verdict{CardState::unsafe, std::move(objection),
                 no_group ? "switch on the IOMMU (VT-d or AMD-Vi) in the firmware, and on Intel "
                            "boot with intel_iommu=on"
                          : "put the card into another slot of the board"};
}

Verdicts held_open(const GpuCard& card, const CardEvidence& evidence) {
  const auto files = evidence.files.find(card.pci.address);
  if (files == evidence.files.end()) return std::nullopt;
  std::vector<DeviceHolder> holders;
  std::ranges::copy_if(
      evidence.holders, std::back_inserter(holders),
      [&](const DeviceHolder& holder) { return files->second.contains(holder.file); });
  if (holders.empty()) return std::nullopt;
  return Verdict{CardState::in_use, holder_words(holders), holder_hint(holders, card.pci.address)};
}

Verdicts not_bound(const CardGroup& group) {
  for (const PciDevice* const device : group.scan.endpoints()) {
    if (device->driver == vfio_driver) continue;
    const std::string on = device->driver.empty() ? "has no driver" : cat("is on ", device->driver);
    return Verdict{CardState::unbound, cat(device->address, ' ', on), "bind it: fuse agent bind"};
  }
  return std::nullopt;
}

// The first that objects decides.
Verdict judge(const GpuCard& card, const CardGroup& group, const DeviceFiles& files,
              const CardEvidence& evidence) {
  for (const Verdicts& verdict :
       {set_aside(card, files), not_answering(card, evidence), kept_by_operator(card),
        drives_the_console(card, files), is_sliced(card, evidence),
        has_failed(card, files, evidence), shares_itself(card), in_bad_company(group),
        held_open(card, evidence), not_bound(group)}) {
    if (verdict) return *verdict;
  }
  return {};
}

// States that keep the whole group from being handed over.
bool keeps_the_group(CardState state) {
  static constexpr std::array states = {CardState::mig,  CardState::display,
                                        CardState::off,  CardState::unsafe,
                                        CardState::sick, CardState::quarantined};
  return std::ranges::find(states, state) != states.end();
}

}  // namespace

bool same_card(std::string_view a, std::string_view b) {
  const auto one = pci_address(a);
  return one && one == pci_address(b);
}

std::string group_objection(const GpuGroupScan& group) {
  if (group.number.empty()) return "it is in no IOMMU group";
  if (!group.unreadable.empty()) {
    return cat("IOMMU group ", group.number,
               " has members that cannot be read: ", join(group.unreadable, ", "));
  }
  std::vector<std::string> foreign;
  for (const GroupMember& member : group.members) {
    if (member.kind == MemberKind::foreign) foreign.push_back(member_words(member.device));
  }
  if (foreign.empty()) return "";
  return cat("IOMMU group ", group.number, " also holds ", join(foreign, ", "),
             ", which this host would lose");
}

void judge_group(CardGroup& group, const DeviceFiles& files, const CardEvidence& evidence) {
  for (GpuCard& card : group.cards) {
    Verdict verdict = judge(card, group, files, evidence);
    card.state = verdict.state;
    card.reason = std::move(verdict.reason);
    card.hint = std::move(verdict.hint);
  }
  const auto keeper = std::ranges::find_if(
      group.cards, [](const GpuCard& card) { return keeps_the_group(card.state); });
  if (keeper == group.cards.end()) return;
  const std::string why =
      cat(keeper->pci.address, " in the same IOMMU group is ", to_string(keeper->state));
  for (GpuCard& card : group.cards) {
    if (keeps_the_group(card.state)) continue;
    card.state = CardState::unsafe;
    card.reason = why;
    card.hint = "the cards of a group go to one VM together or not at all";
  }
}

}  // namespace fuse
