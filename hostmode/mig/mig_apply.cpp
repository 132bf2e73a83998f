#include "hostmode/mig/mig_apply.h"

#include <algorithm>
#include <optional>

#include "base/text.h"
#include "hostmode/devices/pci_address.h"
#include "hostmode/mig/mig_undo.h"
#include "hostmode/mig/profile.h"
#include "hostmode/mig/vgpu_host.h"

namespace fuse {

namespace {

Error refuse(std::string message, std::string hint = "") {
  Error error{ErrorCode::unavailable, std::move(message)};
  if (!hint.empty()) error.details["hint"] = std::move(hint);
  return error;
}

const GpuCard* card_at(const DeviceInventory& inventory, const std::string& address) {
  for (const CardGroup& group : inventory.groups) {
    for (const GpuCard& card : group.cards) {
      if (card.pci.address == address) return &card;
    }
  }
  return nullptr;
}

const InventoryInstance* line_of(const std::vector<InventoryInstance>& lines,
                                 const std::string& uuid) {
  const auto found = std::ranges::find(lines, uuid, &InventoryInstance::uuid);
  return found == lines.end() ? nullptr : &*found;
}

// One run of `mig apply`.
class Apply {
 public:
  Apply(Host& host, const DevicePaths& paths, const MigApplyOptions& options)
      : host_(host), paths_(paths), options_(options) {}

  Result<MigOutcome> run() {
    if (auto undone = undo_change(host_, paths_, options_.writes); !undone) return undone.error();
    if (auto looked = look(); !looked) return looked.error();
    if (auto planned = plan(); !planned) return planned.error();
    if (auto possible = check(); !possible) return possible.error();
    if (auto begun = begin_change(host_, paths_, journal_); !begun) return begun.error();
    auto carved = carve();
    if (carved) return MigOutcome{choices_.size(), lines_};
    Error error = carved.error();
    if (auto undone = undo_change(host_, paths_, options_.writes); !undone) {
      error.message += cat("; ", undone.error().message);
    } else {
      error.message += "; what was done before it was undone";
    }
    return error;
  }

 private:
  Result<void> look() {
    auto inventory = read_inventory(host_, paths_, {});
    if (!inventory) return inventory.error();
    inventory_ = std::move(*inventory);
    auto files = read_device_files(host_, paths_);
    if (!files) return files.error();
    files_ = std::move(*files);
    auto layout = read_layout(host_, paths_);
    if (!layout) return layout.error();
    layout_ = std::move(*layout);
    auto cards = read_mig_cards(host_, inventory_);
    if (!cards) return cards.error();
    std::ranges::copy_if(*cards, std::back_inserter(cards_),
                         [this](const MigCard& card) { return may_cut(card); });
    if (!cards_.empty()) return {};
    return refuse("no card here can be cut into MIG instances",
                  "a card on vfio-pci has to go back to its driver first: fuse agent bind "
                  "--unbind SLOT");
  }

  [[nodiscard]] bool may_cut(const MigCard& card) const {
    if (!options_.cards.empty()) {
      return std::ranges::any_of(options_.cards, [&](const std::string& named) {
        return pci_address(named) == card.address;
      });
    }
    const auto role = files_.roles.find(card.address);
    return role == files_.roles.end() || role->second == CardRole::mig;
  }

  Result<void> plan() {
    if (options_.wishes.empty()) return plan_persisted();
    for (const LayoutWish& wish : options_.wishes) {
      if (auto profile = parse_profile(wish.profile); !profile) return profile.error();
    }
    std::vector<CardSlots> slots;
    for (const MigCard& card : cards_) {
      if (card.slots.profiles.empty()) {
        return refuse(cat("what ", card.address, " (10de:", card.device,
                          ") can be cut into is known only once it is in MIG mode"),
                      cat("switch it on: nvidia-smi -i ", card.address, " -mig 1"));
      }
      slots.push_back(card.slots);
    }
    auto choices = plan_layout(options_.wishes, slots);
    if (!choices) return choices.error();
    choices_ = std::move(*choices);
    return {};
  }

  // What the layout has and the cards have not, at the very places.
  Result<void> plan_persisted() {
    if (layout_.empty()) {
      return refuse("no layout was persisted here yet",
                    "name one: fuse agent mig apply --profile 1g.10gb=7");
    }
    for (const LayoutEntry& entry : layout_) {
      const auto card = std::ranges::find(cards_, entry.gpu, &MigCard::uuid);
      if (card == cards_.end()) {
        return refuse(cat("card ", entry.gpu, " of the layout is not here, or may not be cut"));
      }
      const auto& uses = card->slots.used;
      const bool there = std::ranges::any_of(uses, [&](const SlotUse& use) {
        return use.start == entry.start && use.profile == entry.profile;
      });
      if (there) continue;
      const SlotProfile* const profile = find_profile(card->slots, entry.profile);
      if (profile == nullptr) {
        return refuse(cat(card->address, " has no ", entry.profile, ", which the layout names"));
      }
      for (const SlotUse& use : uses) {
        const bool apart =
            use.start + use.size <= entry.start || entry.start + profile->size <= use.start;
        if (apart) continue;
        return refuse(cat(entry.profile, " cannot begin at ", entry.start, " of ", card->address,
                          ", where ", use.profile, " at ", use.start, " is: nothing was changed"));
      }
      choices_.push_back({static_cast<std::size_t>(card - cards_.begin()), *profile, entry.start});
    }
    return {};
  }

  [[nodiscard]] bool is_involved(std::size_t card) const {
    return std::ranges::any_of(choices_,
                               [card](const SlotChoice& choice) { return choice.card == card; });
  }

  // All that can be known to fail is refused here.
  Result<void> check() {
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      const MigCard& card = cards_[i];
      if (!is_involved(i)) continue;
      journal_.had[card.address];
      for (const GpuInstance& instance : card.instances) {
        journal_.had[card.address].insert(instance.id);
      }
      if (!card.enabled) {
        if (auto idle = check_idle(card); !idle) return idle;
        journal_.switched.insert(card.address);
      }
      const VgpuHost vgpu = look_for_vgpu(host_, card.address);
      if (vgpu.way != VgpuWay::none) continue;
      if (!vgpu.can_switch_on) {
        return refuse(cat("a VM cannot be given a MIG instance of ", card.address, ": ",
                          vgpu.missing, ".  Nothing was changed"),
                      "without it this host serves whole cards: fuse agent bind");
      }
      if (!card.instances.empty()) {
        return refuse(cat(vgpu.missing, ", and switching them on would take its ",
                          card.instances.size(), " instances away"),
                      cat("destroy them, then: ", sriov_manage, " -e ", card.address));
      }
    }
    return {};
  }

  // A card of which a process has something open cannot be switched.
  Result<void> check_idle(const MigCard& card) const {
    const GpuCard* const found = card_at(inventory_, card.address);
    if (found == nullptr) return {};
    const bool idle = found->state == CardState::unbound || found->state == CardState::mig ||
                      found->state == CardState::ready;
    if (idle) return {};
    Error error{ErrorCode::conflict,
                cat("MIG mode of ", card.address, " cannot be switched on: it is ",
                    to_string(found->state), ": ", found->reason)};
    if (!found->hint.empty()) error.details["hint"] = found->hint;
    return error;
  }

  Result<void> carve() {
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      if (!is_involved(i)) continue;
      if (auto ready = prepare(cards_[i]); !ready) return ready;
    }
    for (SlotChoice& choice : choices_) {
      if (auto made = make(choice); !made) return made;
    }
    for (MigCard& card : cards_) {
      if (!card.enabled) continue;
      if (auto read = read_slots(host_, card); !read) return read;
    }
    for (const SlotChoice& choice : choices_) {
      if (auto there = read_back(choice); !there) return there;
    }
    if (auto made = make_devices(); !made) return made;
    return write_files();
  }

  Result<void> prepare(MigCard& card) {
    if (!card.enabled) {
      options_.tell(cat("switch MIG mode of ", card.address, " on"));
      if (auto on = switch_mig_mode(host_, card, true); !on) return on;
      card.enabled = true;
    }
    if (look_for_vgpu(host_, card.address).way == VgpuWay::none) {
      options_.tell(cat("switch the virtual functions of ", card.address, " on"));
      if (auto on = switch_on_functions(host_, card.address); !on) return on;
    }
    return read_slots(host_, card);
  }

  Result<void> make(SlotChoice& choice) {
    const MigCard& card = cards_[choice.card];
    // In MIG mode the card tells its own names.
    const SlotProfile* const profile = find_profile(card.slots, choice.profile.name);
    if (profile == nullptr) return refuse(cat(card.address, " has no ", choice.profile.name));
    choice.profile = *profile;
    options_.tell(cat("make ", profile->name, " at ", choice.start, " of ", card.address));
    const auto made = create_instance(host_, card, choice.profile, choice.start);
    if (!made) return made.error();
    return {};
  }

  Result<void> read_back(const SlotChoice& choice) const {
    const MigCard& card = cards_[choice.card];
    const bool there = std::ranges::any_of(card.slots.used, [&](const SlotUse& use) {
      return use.start == choice.start && use.profile == choice.profile.name;
    });
    if (there) return {};
    return Error{ErrorCode::internal,
                 cat(choice.profile.name, " at ", choice.start, " of ", card.address,
                     " was made, but the card now holds ", uses_words(card.slots.used))};
  }

  // The layout's entry of an instance that is ours: of the layout, or one that was
  // asked for.
  LayoutEntry* entry_of(const MigCard& card, const GpuInstance& instance) {
    const auto entry = std::ranges::find_if(layout_, [&](const LayoutEntry& known) {
      return known.gpu == card.uuid && known.start == instance.start &&
             known.profile == instance.name;
    });
    if (entry != layout_.end()) return &*entry;
    const bool wished = std::ranges::any_of(options_.wishes, [&](const LayoutWish& wish) {
      return resolve_profile(wish.profile, {instance.name}).has_value();
    });
    if (!wished) return nullptr;
    layout_.push_back({card.uuid, instance.name, instance.start, options_.new_uuid()});
    return &layout_.back();
  }

  Result<void> make_devices() {
    lines_.clear();
    for (const MigCard& card : cards_) {
      if (card.instances.empty()) continue;
      const auto uuids = mig_uuids(host_, card);
      for (const GpuInstance& instance : card.instances) {
        const LayoutEntry* const entry = entry_of(card, instance);
        if (entry == nullptr) continue;
        auto path = device_of(card, instance, entry->device);
        if (!path) {
          return in_context(cat(instance.name, " at ", instance.start, " of ", card.address),
                            path.error());
        }
        const auto uuid = uuids.find(instance.id);
        lines_.push_back({.profile = lowercase(instance.name),
                          .kind = card.kind,
                          .uuid = entry->device,
                          .parent = card.uuid,
                          .path = *std::move(path),
                          .mig = uuid == uuids.end() ? "" : uuid->second});
      }
    }
    return {};
  }

  Result<std::string> device_of(const MigCard& card, const GpuInstance& instance,
                                const std::string& uuid) {
    const InventoryInstance* const line = line_of(files_.instances, uuid);
    if (line != nullptr && has_vgpu(host_, line->path)) return line->path;
    const auto profile = parse_profile(instance.name);
    if (!profile) return profile.error();
    const auto place = find_vgpu_place(host_, look_for_vgpu(host_, card.address), *profile, uuid);
    if (!place) return place.error();
    journal_.devices.insert(place->path);
    if (auto noted = begin_change(host_, paths_, journal_); !noted) return noted.error();
    options_.tell(cat("make a device of it: ", place->path));
    if (auto made = make_vgpu(host_, *place); !made) return made.error();
    return place->path;
  }

  Result<void> write_files() {
    std::map<std::string, CardRole> roles = files_.roles;
    for (std::size_t i = 0; i < cards_.size(); ++i) {
      if (is_involved(i)) roles[cards_[i].address] = CardRole::mig;
    }
    if (auto written = write_layout(host_, paths_, layout_); !written) return written;
    if (auto written = write_mig_inventory(host_, paths_, lines_); !written) return written;
    if (auto written = write_roles(host_, paths_, roles); !written) return written;
    return end_change(host_, paths_);
  }

  Host& host_;
  const DevicePaths& paths_;
  const MigApplyOptions& options_;
  DeviceInventory inventory_{};
  DeviceFiles files_{};
  std::vector<LayoutEntry> layout_{};
  std::vector<MigCard> cards_{};
  std::vector<SlotChoice> choices_{};
  MigJournal journal_{};
  std::vector<InventoryInstance> lines_{};
};

}  // namespace

Result<MigOutcome> apply_mig(Host& host, const DevicePaths& paths, const MigApplyOptions& options) {
  return Apply(host, paths, options).run();
}

}  // namespace fuse
