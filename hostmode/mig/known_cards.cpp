#include "hostmode/mig/known_cards.h"

#include <algorithm>
#include <array>
#include <string>

#include "base/text.h"

namespace fuse {

namespace {

// Cards with seven compute slices and a grid of eight have the same profiles, and
// differ in how much memory a share is: that of one slice, of two and so on.
struct Family {
  std::string_view devices;
  int one;
  int two;
  int four;
  int eight;
};

// NVIDIA's MIG user guide, "Supported MIG Profiles".
constexpr std::array families = {
    Family{"20b0 20b1 20f1 20f6", 5, 10, 20, 40},   // A100 40 GB, A800
    Family{"20b2 20b5 20f3 20f5", 10, 20, 40, 80},  // A100 80 GB, A800
    Family{"2330 2331 2322 2324", 10, 20, 40, 80},  // H100, H800
    Family{"2321 233a 2339", 12, 24, 47, 94},       // H100 NVL
    Family{"233d 2342 20b6 2329", 12, 24, 48, 96},  // H100 96 GB, GH200, H20
    Family{"2348", 18, 36, 72, 144},                // GH200 144 GB
    Family{"2335 233b", 18, 35, 71, 141},           // H200
    Family{"2901", 23, 45, 90, 180},                // B200
};

SlotProfile profile_of(std::string name, int id, int slices, std::vector<int> starts, int size) {
  const int most = static_cast<int>(starts.size());
  return {.name = std::move(name),
          .id = id,
          .slices = slices,
          .size = size,
          .starts = std::move(starts),
          .most = most};
}

SlotProfile once(SlotProfile profile) {
  profile.most = 1;
  return profile;
}

CardSlots seven_slices(const Family& family) {
  const auto name = [](int slices, int gigabytes) { return cat(slices, "g.", gigabytes, "gb"); };
  const std::vector<int> single = {0, 1, 2, 3, 4, 5, 6};
  return {.slices = 7,
          .profiles = {profile_of(name(1, family.one), 19, 1, single, 1),
                       once(profile_of(name(1, family.one) + "+me", 20, 1, single, 1)),
                       profile_of(name(1, family.two), 15, 1, {0, 2, 4, 6}, 2),
                       profile_of(name(2, family.two), 14, 2, {0, 2, 4}, 2),
                       profile_of(name(3, family.four), 9, 3, {0, 4}, 4),
                       profile_of(name(4, family.four), 5, 4, {0}, 4),
                       profile_of(name(7, family.eight), 0, 7, {0}, 8)}};
}

CardSlots a30() {
  return {.slices = 4,
          .profiles = {profile_of("1g.6gb", 14, 1, {0, 1, 2, 3}, 1),
                       once(profile_of("1g.6gb+me", 21, 1, {0, 1, 2, 3}, 1)),
                       profile_of("2g.12gb", 5, 2, {0, 2}, 2),
                       once(profile_of("2g.12gb+me", 6, 2, {0, 2}, 2)),
                       profile_of("4g.24gb", 0, 4, {0}, 4)}};
}

CardSlots rtx_pro_6000() {
  const std::vector<int> quarters = {0, 3, 6, 9};
  return {.slices = 4,
          .profiles = {
              profile_of("1g.24gb", 14, 1, quarters, 3),
              once(profile_of("1g.24gb+me", 21, 1, quarters, 3)),
              profile_of("1g.24gb+gfx", 47, 1, quarters, 3),
              once(profile_of("1g.24gb+me.all", 65, 1, quarters, 3)),
              profile_of("1g.24gb-me", 67, 1, quarters, 3), profile_of("2g.48gb", 5, 2, {0, 6}, 6),
              profile_of("2g.48gb+gfx", 35, 2, {0, 6}, 6),
              once(profile_of("2g.48gb+me.all", 64, 2, {0, 6}, 6)),
              profile_of("2g.48gb-me", 66, 2, {0, 6}, 6), profile_of("4g.96gb", 0, 4, {0}, 12),
              profile_of("4g.96gb+gfx", 32, 4, {0}, 12)}};
}

bool lists(std::string_view devices, std::string_view device) {
  const auto ids = split(devices, ' ');
  return std::ranges::find(ids, device) != ids.end();
}

}  // namespace

std::optional<CardSlots> known_slots(std::string_view device) {
  if (device == "20b7") return a30();
  if (lists("2bb1 2bb4 2bb5", device)) return rtx_pro_6000();
  for (const Family& family : families) {
    if (lists(family.devices, device)) return seven_slices(family);
  }
  return std::nullopt;
}

}  // namespace fuse
