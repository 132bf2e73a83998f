#include "orchestrator/gpu_choice.h"

#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"

namespace fuse {

namespace {

using Choice = std::variant<GpuChoice, PlacementReason>;

std::string of_kind(const std::string& kind) {
  return kind.empty() ? std::string() : cat(" of kind \"", kind, "\"");
}

PlacementReason short_of(std::string gate, std::int64_t have, std::int64_t want,
                         const std::string& what) {
  return {std::move(gate), cat("has ", have, " of ", want, ' ', what, " free"),
          std::to_string(have), std::to_string(want)};
}

// Devices that can only be passed through together.
struct Group {
  std::vector<std::string> devices{};
  int numa = -1;
  bool usable = true;  // all of it free, whole and of the kind
};

bool matches_kind(const GpuDevice& device, const HostInfo& host, const std::string& kind) {
  if (kind.empty()) return true;
  const std::string& name = device.model.empty() ? host.capacity.gpu_kind : device.model;
  return contains_ignoring_case(name, kind);
}

// A card in MIG mode is no whole device: its slices are what can be had of it.
bool is_sliced(const GpuDevice& device) {
  return equal_ignoring_case(device.mig_mode, "enabled");
}

bool lists_devices(const HostCapacity& capacity) {
  return std::any_of(capacity.gpu_devices.begin(), capacity.gpu_devices.end(),
                     [](const GpuDevice& device) { return !device.uuid.empty(); });
}

std::vector<Group> groups_of(const ResourceSpec& spec, const HostInfo& host) {
  const auto& used = host.allocated.gpu_device_uuids;
  std::map<std::string, Group> groups;
  for (const GpuDevice& device : host.capacity.gpu_devices) {
    if (device.uuid.empty()) continue;
    const std::string key =
        device.iommu_group.empty() ? cat("device ", device.uuid) : device.iommu_group;
    Group& group = groups[key];
    group.devices.push_back(device.uuid);
    if (device.numa_node) group.numa = *device.numa_node;
    const bool free = std::find(used.begin(), used.end(), device.uuid) == used.end();
    if (!free || is_sliced(device) || !matches_kind(device, host, spec.gpu_kind)) {
      group.usable = false;
    }
  }
  std::vector<Group> out;
  out.reserve(groups.size());
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  return out;
}

// The fewest groups that have exactly `want` devices together.
std::optional<std::vector<const Group*>> exact_set(const std::vector<const Group*>& groups,
                                                   std::size_t want) {
  std::vector<std::optional<std::vector<const Group*>>> best(want + 1);
  best[0].emplace();
  for (const Group* group : groups) {
    const std::size_t size = group->devices.size();
    for (std::size_t total = want; total >= size; --total) {
      const auto& before = best[total - size];
      if (!before || (best[total] && best[total]->size() <= before->size() + 1)) continue;
      auto with = *before;
      with.push_back(group);
      best[total] = std::move(with);
    }
  }
  return best[want];
}

std::size_t device_count(const std::vector<const Group*>& groups) {
  std::size_t count = 0;
  for (const Group* group : groups) count += group->devices.size();
  return count;
}

// On the node with the least to spare that can serve it, else across nodes.
std::optional<std::vector<const Group*>> choose_set(const std::vector<const Group*>& usable,
                                                    std::size_t want) {
  std::map<int, std::vector<const Group*>> nodes;
  for (const Group* group : usable) nodes[group->numa].push_back(group);
  std::optional<std::vector<const Group*>> best;
  std::size_t spare_of_best = 0;
  for (const auto& [node, groups] : nodes) {
    const auto set = exact_set(groups, want);
    if (!set) continue;
    const std::size_t spare = device_count(groups) - want;
    if (best && spare >= spare_of_best) continue;
    best = set;
    spare_of_best = spare;
  }
  return best ? best : exact_set(usable, want);
}

// An operator may have declared fewer devices than there are, to keep some.
std::optional<PlacementReason> over_limit(const ResourceSpec& spec, const HostInfo& host) {
  const std::int64_t limit = host.capacity.gpus;
  const auto listed = static_cast<std::int64_t>(host.capacity.gpu_devices.size());
  if (limit <= 0 || limit >= listed) return std::nullopt;
  const std::int64_t have = std::max<std::int64_t>(0, limit - host.allocated.gpus);
  if (spec.gpus <= have) return std::nullopt;
  return short_of("gpu-limit", have, spec.gpus, "gpus that may be used");
}

Choice choose_devices(const ResourceSpec& spec, const HostInfo& host) {
  const auto& devices = host.capacity.gpu_devices;
  const bool any_of_kind = std::any_of(devices.begin(), devices.end(), [&](const auto& device) {
    return !device.uuid.empty() && !is_sliced(device) && matches_kind(device, host, spec.gpu_kind);
  });
  if (!any_of_kind && !spec.gpu_kind.empty()) {
    std::set<std::string> models;
    for (const GpuDevice& device : devices) models.insert(device.model);
    const std::vector<std::string> names(models.begin(), models.end());
    return PlacementReason{
        "gpu-kind", cat("has no whole gpu", of_kind(spec.gpu_kind), ", only ", join(names, ", ")),
        join(names, ", "), spec.gpu_kind};
  }
  const auto groups = groups_of(spec, host);
  std::vector<const Group*> usable;
  for (const Group& group : groups) {
    if (group.usable) usable.push_back(&group);
  }
  const auto want = static_cast<std::size_t>(spec.gpus);
  const std::size_t free = device_count(usable);
  if (free < want) {
    return short_of("gpu-count", static_cast<std::int64_t>(free), spec.gpus,
                    cat("gpus", of_kind(spec.gpu_kind)));
  }
  if (auto refusal = over_limit(spec, host)) return *std::move(refusal);
  const auto set = choose_set(usable, want);
  if (!set) {
    return PlacementReason{"gpu-group",
                           cat("has ", free, " gpus", of_kind(spec.gpu_kind),
                               " free, but no whole iommu groups that make exactly ", want),
                           std::to_string(free), std::to_string(want)};
  }
  GpuChoice choice;
  for (const Group* group : *set) {
    choice.gpu_device_uuids.insert(choice.gpu_device_uuids.end(), group->devices.begin(),
                                   group->devices.end());
  }
  std::sort(choice.gpu_device_uuids.begin(), choice.gpu_device_uuids.end());
  return choice;
}

Choice choose_by_count(const ResourceSpec& spec, const HostInfo& host) {
  if (host.capacity.gpus == 0) {
    return PlacementReason{"gpu-count", "has no gpus", "0", std::to_string(spec.gpus)};
  }
  if (!spec.gpu_kind.empty() && !equal_ignoring_case(spec.gpu_kind, host.capacity.gpu_kind)) {
    return PlacementReason{
        "gpu-kind",
        cat("has gpus", of_kind(host.capacity.gpu_kind), ", not", of_kind(spec.gpu_kind)),
        host.capacity.gpu_kind, spec.gpu_kind};
  }
  const std::int64_t free =
      std::max<std::int64_t>(0, std::int64_t{host.capacity.gpus} - host.allocated.gpus);
  if (free < spec.gpus) {
    return short_of("gpu-count", free, spec.gpus, cat("gpus", of_kind(spec.gpu_kind)));
  }
  return GpuChoice{};
}

const GpuDevice* card_of(const MigInstance& instance, const HostInfo& host) {
  for (const GpuDevice& device : host.capacity.gpu_devices) {
    if (!device.uuid.empty() && device.uuid == instance.parent_gpu_uuid) return &device;
  }
  return nullptr;
}

bool host_kind_passes(const HostInfo& host, const std::string& kind) {
  return host.capacity.gpu_kind.empty() || equal_ignoring_case(host.capacity.gpu_kind, kind);
}

bool on_mig_card(const MigInstance& instance, const HostInfo& host) {
  const GpuDevice* const card = card_of(instance, host);
  return card == nullptr || card->mig_capable;
}

bool instance_matches(const MigInstance& instance, const HostInfo& host, const std::string& kind) {
  if (kind.empty()) return true;
  const GpuDevice* const card = card_of(instance, host);
  if (!instance.kind.empty()) return contains_ignoring_case(instance.kind, kind);
  if (card != nullptr && !card->model.empty()) return contains_ignoring_case(card->model, kind);
  return host_kind_passes(host, kind);
}

// The name under which the host carries the profile: itself, or with the
// graphics extension where it has no plain one.
std::string carried_profile(const ResourceSpec& spec, const HostInfo& host) {
  const std::string wanted = lowercase(spec.gpu_profile);
  const auto has = [&](const std::string& profile) {
    return std::any_of(host.capacity.mig_instances.begin(), host.capacity.mig_instances.end(),
                       [&](const auto& entry) { return lowercase(entry.profile) == profile; });
  };
  const std::string graphics = cat(wanted, "+gfx");
  return !has(wanted) && has(graphics) ? graphics : wanted;
}

struct Card {
  std::string uuid{};
  std::size_t used = 0;
  std::vector<std::string> free{};  // instances that would do
};

std::vector<Card> cards_of(const ResourceSpec& spec, const HostInfo& host) {
  const auto& taken = host.allocated.mig_instance_uuids;
  const std::string profile = carried_profile(spec, host);
  std::map<std::string, Card> cards;
  for (const MigInstance& instance : host.capacity.mig_instances) {
    Card& card = cards[instance.parent_gpu_uuid];
    card.uuid = instance.parent_gpu_uuid;
    if (std::find(taken.begin(), taken.end(), instance.uuid) != taken.end()) {
      ++card.used;
    } else if (lowercase(instance.profile) == profile && on_mig_card(instance, host) &&
               instance_matches(instance, host, spec.gpu_kind)) {
      card.free.push_back(instance.uuid);
    }
  }
  std::vector<Card> out;
  for (auto& [uuid, card] : cards) {
    std::sort(card.free.begin(), card.free.end());
    out.push_back(std::move(card));
  }
  return out;
}

// Cards that can serve all of it alone come first, then those in use, then
// those with the least to spare.
void order_cards(std::vector<Card>& cards, std::size_t want) {
  std::stable_sort(cards.begin(), cards.end(), [want](const Card& a, const Card& b) {
    const bool a_alone = a.free.size() >= want;
    const bool b_alone = b.free.size() >= want;
    if (a_alone != b_alone) return a_alone;
    if ((a.used > 0) != (b.used > 0)) return a.used > 0;
    if (a.free.size() != b.free.size()) {
      return a_alone ? a.free.size() < b.free.size() : a.free.size() > b.free.size();
    }
    return a.uuid < b.uuid;
  });
}

PlacementReason no_instance(const ResourceSpec& spec) {
  return {"mig-profile", cat("has no ", spec.gpu_profile, " mig instances"), "0",
          std::to_string(spec.gpus)};
}

PlacementReason no_mig_card(const ResourceSpec& spec, const HostInfo& host) {
  return {"mig-capable", cat("has no mig-capable gpu", of_kind(spec.gpu_kind)),
          host.capacity.gpu_kind, spec.gpu_kind};
}

// Why the host would not do even if everything on it were free.
std::optional<PlacementReason> never_serves(const ResourceSpec& spec, const HostInfo& host) {
  std::vector<MigInstance> left = host.capacity.mig_instances;
  const std::string profile = carried_profile(spec, host);
  std::erase_if(left, [&](const MigInstance& i) { return lowercase(i.profile) != profile; });
  if (left.empty()) return no_instance(spec);
  std::erase_if(left, [&](const MigInstance& i) { return !on_mig_card(i, host); });
  if (left.empty()) return no_mig_card(spec, host);
  std::set<std::string> kinds;
  for (const MigInstance& instance : left) {
    if (instance_matches(instance, host, spec.gpu_kind)) return std::nullopt;
    kinds.insert(instance.kind.empty() ? host.capacity.gpu_kind : instance.kind);
  }
  const std::vector<std::string> names(kinds.begin(), kinds.end());
  return PlacementReason{"gpu-kind",
                         cat("has ", spec.gpu_profile, " mig instances of kind ", join(names, ", "),
                             ", not", of_kind(spec.gpu_kind)),
                         join(names, ", "), spec.gpu_kind};
}

Choice choose_instances(const ResourceSpec& spec, const HostInfo& host) {
  if (auto never = never_serves(spec, host)) return *std::move(never);
  const auto want = static_cast<std::size_t>(spec.gpus);
  auto cards = cards_of(spec, host);
  order_cards(cards, want);
  GpuChoice choice;
  std::size_t free = 0;
  for (const Card& card : cards) {
    free += card.free.size();
    for (const std::string& uuid : card.free) {
      if (choice.mig_instance_uuids.size() < want) choice.mig_instance_uuids.push_back(uuid);
    }
  }
  if (choice.mig_instance_uuids.size() == want) return choice;
  return short_of("mig-busy", static_cast<std::int64_t>(free), spec.gpus,
                  cat(spec.gpu_profile, " mig instances", of_kind(spec.gpu_kind)));
}

std::int32_t count_in(const std::map<std::string, std::int32_t>& counts, const std::string& key) {
  const auto found = counts.find(key);
  return found == counts.end() ? 0 : found->second;
}

bool has_mig_card(const HostInfo& host, const std::string& kind) {
  const auto& devices = host.capacity.gpu_devices;
  if (devices.empty()) return kind.empty() || host_kind_passes(host, kind);
  return std::any_of(devices.begin(), devices.end(), [&](const GpuDevice& device) {
    return device.mig_capable && matches_kind(device, host, kind);
  });
}

Choice choose_by_profile_count(const ResourceSpec& spec, const HostInfo& host) {
  const std::string profile = lowercase(spec.gpu_profile);
  const std::int32_t declared = count_in(host.capacity.mig_profiles, profile);
  if (declared == 0) return no_instance(spec);
  if (!has_mig_card(host, spec.gpu_kind)) return no_mig_card(spec, host);
  const std::int32_t used = count_in(host.allocated.mig_profiles, profile);
  const std::int32_t free = std::max(0, declared - used);
  if (free < spec.gpus) {
    return short_of("mig-busy", free, spec.gpus, cat(spec.gpu_profile, " mig instances"));
  }
  return GpuChoice{};
}

}  // namespace

std::variant<GpuChoice, PlacementReason> choose_gpus(const ResourceSpec& spec,
                                                     const HostInfo& host) {
  if (spec.gpus <= 0) return GpuChoice{};
  if (!spec.gpu_profile.empty()) {
    return host.capacity.mig_instances.empty() ? choose_by_profile_count(spec, host)
                                               : choose_instances(spec, host);
  }
  return lists_devices(host.capacity) ? choose_devices(spec, host) : choose_by_count(spec, host);
}

FreeDevices count_free(const HostInfo& host) {
  const auto count = [](const auto& listed, const std::vector<std::string>& used) {
    return std::count_if(listed.begin(), listed.end(), [&](const auto& one) {
      return std::find(used.begin(), used.end(), one.uuid) == used.end();
    });
  };
  const HostCapacity& all = host.capacity;
  FreeDevices free{.whole = std::int64_t{all.gpus} - host.allocated.gpus};
  if (!all.gpu_devices.empty())
    free.whole = count(all.gpu_devices, host.allocated.gpu_device_uuids);
  free.instances = count(all.mig_instances, host.allocated.mig_instance_uuids);
  if (all.mig_instances.empty()) {
    for (const auto& [profile, declared] : all.mig_profiles) free.instances += declared;
  }
  return free;
}

bool serves_gpus(const ResourceSpec& spec, const HostInfo& host) {
  if (host.backend != Backend::qemu) return false;
  if (!spec.gpu_profile.empty()) {
    return !host.capacity.mig_instances.empty() || !host.capacity.mig_profiles.empty();
  }
  return host.capacity.gpus > 0 || !host.capacity.gpu_devices.empty();
}

std::string gpu_words(const ResourceSpec& spec) {
  const std::string_view plural = spec.gpus == 1 ? "" : "s";
  const std::string what = spec.gpu_profile.empty()
                               ? cat("gpu", plural)
                               : cat(spec.gpu_profile, " mig instance", plural);
  return cat(spec.gpus, ' ', what, of_kind(spec.gpu_kind));
}

}  // namespace fuse
