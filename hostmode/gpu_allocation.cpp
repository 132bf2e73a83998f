#include "hostmode/gpu_allocation.h"

#include <algorithm>
#include <map>
#include <optional>

#include "base/text.h"

namespace fuse {

namespace {

std::string kind_words(const std::string& kind) {
  return kind.empty() ? "any kind" : cat("kind '", kind, "'");
}

bool is_of_kind(const GpuGroup& group, const std::string& kind) {
  if (kind.empty() || contains_ignoring_case(group.kind, kind)) return true;
  return !group.gpus.empty() && std::ranges::all_of(group.gpus, [&](const InventoryGpu& gpu) {
    return contains_ignoring_case(gpu.model, kind);
  });
}

bool holds_any(const GpuGroup& group, const std::vector<std::string>& uuids) {
  return std::ranges::any_of(group.gpus, [&](const InventoryGpu& gpu) {
    return std::ranges::find(uuids, gpu.uuid) != uuids.end();
  });
}

std::vector<std::size_t> candidates(const GpuWish& wish, std::span<const GpuGroup> inventory,
                                    const std::set<std::string>& taken) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < inventory.size(); ++i) {
    const GpuGroup& group = inventory[i];
    const bool named = wish.uuids.empty() || holds_any(group, wish.uuids);
    if (named && !taken.contains(group.group) && is_of_kind(group, wish.kind)) out.push_back(i);
  }
  return out;
}

std::size_t gpus_in(const std::vector<std::size_t>& groups, std::span<const GpuGroup> inventory) {
  std::size_t count = 0;
  for (const std::size_t i : groups) count += inventory[i].gpus.size();
  return count;
}

using Choice = std::optional<std::vector<std::size_t>>;

// Better is fewer groups, then the lexicographically lower ones.
bool better(const std::vector<std::size_t>& a, const Choice& b) {
  return !b || a.size() < b->size() || (a.size() == b->size() && a < *b);
}

// Exact subset sum: best[n] is the best choice of the groups seen so far that
// holds n GPUs.
Choice exact_choice(const std::vector<std::size_t>& groups, std::span<const GpuGroup> inventory,
                    std::size_t wanted) {
  std::vector<Choice> best(wanted + 1);
  best[0] = std::vector<std::size_t>();
  for (const std::size_t group : groups) {
    const std::size_t size = inventory[group].gpus.size();
    if (size == 0) continue;
    for (std::size_t total = wanted; total >= size; --total) {
      if (!best[total - size]) continue;
      std::vector<std::size_t> longer = *best[total - size];
      longer.push_back(group);
      if (better(longer, best[total])) best[total] = std::move(longer);
    }
  }
  return best[wanted];
}

// The best choice within one node; across nodes when none has it.  Groups whose node
// is not known count as a node of their own.
Choice near_choice(const std::vector<std::size_t>& groups, std::span<const GpuGroup> inventory,
                   std::size_t wanted) {
  std::map<std::optional<std::int32_t>, std::vector<std::size_t>> nodes;
  for (const std::size_t group : groups) nodes[inventory[group].numa].push_back(group);
  Choice best;
  for (const auto& [node, members] : nodes) {
    auto choice = exact_choice(members, inventory, wanted);
    if (choice && better(*choice, best)) best = std::move(choice);
  }
  return best ? best : exact_choice(groups, inventory, wanted);
}

}  // namespace

Result<std::vector<std::size_t>> choose_groups(const GpuWish& wish,
                                               std::span<const GpuGroup> inventory,
                                               const std::set<std::string>& taken) {
  const auto groups = candidates(wish, inventory, taken);
  const std::size_t available = gpus_in(groups, inventory);
  const auto wanted =
      wish.uuids.empty() ? static_cast<std::size_t>(std::max(0, wish.count)) : wish.uuids.size();
  const Error insufficient{ErrorCode::conflict, cat("insufficient free gpus: requested ", wanted,
                                                    " of ", kind_words(wish.kind), ", ", available,
                                                    " available in complete iommu groups")};
  if (wanted > available) return insufficient;
  if (!wish.uuids.empty()) {
    // Groups that hold a named GPU must hold nothing but named ones.
    if (available != wanted) return insufficient;
    return groups;
  }
  auto choice = near_choice(groups, inventory, wanted);
  if (!choice) return insufficient;
  return *choice;
}

namespace {

// Whether an instance of the profile `has` is what a wish for `wanted` gets.
bool serves(std::string_view has, const std::string& wanted,
            std::span<const MigInstance> inventory) {
  if (equal_ignoring_case(has, wanted)) return true;
  const bool has_plain = std::ranges::any_of(inventory, [&](const MigInstance& instance) {
    return equal_ignoring_case(instance.profile, wanted);
  });
  return !has_plain && equal_ignoring_case(has, cat(wanted, "+gfx"));
}

// The instance of that uuid, or why it cannot be had.
Result<std::size_t> named_instance(const std::string& uuid, const MigWish& wish,
                                   std::span<const MigInstance> inventory,
                                   const std::set<std::string>& taken) {
  const auto refuse = [&](std::string_view why) {
    return Error{ErrorCode::conflict, cat("mig instance ", uuid, " ", why)};
  };
  const auto found = std::ranges::find(inventory, uuid, &MigInstance::uuid);
  if (found == inventory.end()) return refuse("not in host inventory");
  if (!wish.profile.empty() && !serves(found->profile, wish.profile, inventory)) {
    return refuse(cat("is profile '", found->profile, "', not '", wish.profile, "'"));
  }
  if (!contains_ignoring_case(found->kind, wish.kind)) {
    return refuse(cat("is kind '", found->kind, "', not '", wish.kind, "'"));
  }
  if (taken.contains(uuid)) return refuse("already attached to another vm");
  return static_cast<std::size_t>(found - inventory.begin());
}

Result<std::vector<std::size_t>> named_instances(const MigWish& wish,
                                                 std::span<const MigInstance> inventory,
                                                 const std::set<std::string>& taken) {
  std::vector<std::size_t> chosen;
  for (const std::string& uuid : wish.uuids) {
    if (std::ranges::count(wish.uuids, uuid) > 1) {
      return Error{ErrorCode::conflict, cat("mig instance ", uuid, " requested more than once")};
    }
    const auto index = named_instance(uuid, wish, inventory, taken);
    if (!index) return index.error();
    chosen.push_back(*index);
  }
  return chosen;
}

}  // namespace

Result<std::vector<std::size_t>> choose_instances(const MigWish& wish,
                                                  std::span<const MigInstance> inventory,
                                                  const std::set<std::string>& taken) {
  if (!wish.uuids.empty()) return named_instances(wish, inventory, taken);
  std::vector<std::size_t> free;
  for (std::size_t i = 0; i < inventory.size(); ++i) {
    const MigInstance& instance = inventory[i];
    if (serves(instance.profile, wish.profile, inventory) &&
        contains_ignoring_case(instance.kind, wish.kind) && !taken.contains(instance.uuid)) {
      free.push_back(i);
    }
  }
  const auto wanted = static_cast<std::size_t>(std::max(0, wish.count));
  if (free.size() < wanted) {
    return Error{ErrorCode::conflict,
                 cat("insufficient free mig instances: requested ", wanted, " x ", wish.profile,
                     " of ", kind_words(wish.kind), ", ", free.size(), " free")};
  }
  free.resize(wanted);
  return free;
}

}  // namespace fuse
