#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fuse {

// A MIG profile's name taken apart:
//   [<C>c.]<G>g.<GB>gb[+ATTRIBUTE{,ATTRIBUTE} | -ATTRIBUTE{,ATTRIBUTE}]
// with the attributes me, me.all and gfx.  GB is a rounded share of the card's
// memory, so drivers disagree by one about the same profile.
struct MigProfile {
  int compute = 0;  // slices of a compute instance inside; 0: all of them
  int slices = 0;
  int gigabytes = 0;
  std::string attributes{};  // "+me", "-me", ""; as written

  bool operator==(const MigProfile&) const = default;
};

// invalid_argument, with the name and what a valid one looks like.
Result<MigProfile> parse_profile(std::string_view name);

// Whether drivers may mean one profile by both: equal but for rounding.
[[nodiscard]] bool same_profile(const MigProfile& a, const MigProfile& b);

// Which of `names` is meant by `wanted`: itself, else the one of as many slices and
// the nearest size within the rounding.
std::optional<std::string> resolve_profile(std::string_view wanted,
                                           const std::vector<std::string>& names);

// The profile behind the name of a vGPU type: "GRID A100-1-5CME" is 1g.5gb+me.
// Nothing for a type that shares its card by time ("NVIDIA L40S-1B").
std::optional<MigProfile> profile_of_vgpu(std::string_view type_name);

// Whether a vGPU of type profile `type` takes an instance of `instance`: on cards
// whose instances carry graphics, the types are named without saying so.
[[nodiscard]] bool vgpu_takes(const MigProfile& type, const MigProfile& instance);

}  // namespace fuse
