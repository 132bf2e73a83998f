#include "hostmode/mig/profile.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>

#include "base/quote.h"
#include "base/text.h"

namespace fuse {

namespace {

// Takes "NUMBER<unit>" from the front; 0 when it is not there.
int take_number(std::string_view& text, std::string_view unit) {
  int value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  const auto digits = static_cast<std::size_t>(end - text.data());
  const bool fits = failure == std::errc() && value > 0 && text.substr(digits).starts_with(unit) &&
                    text.front() != '0';
  if (!fits) return 0;
  text.remove_prefix(digits + unit.size());
  return value;
}

bool are_attributes(std::string_view text) {
  static constexpr std::array<std::string_view, 3> known = {"me", "me.all", "gfx"};
  if (text.empty()) return true;
  if (text.front() != '+' && text.front() != '-') return false;
  const auto names = split(text.substr(1), ',');
  return std::ranges::all_of(
      names, [](const std::string& name) { return std::ranges::find(known, name) != known.end(); });
}

std::optional<MigProfile> take_apart(std::string_view name) {
  MigProfile profile;
  std::string_view rest = name;
  profile.compute = take_number(rest, "c.");
  profile.slices = take_number(rest, "g.");
  profile.gigabytes = take_number(rest, "gb");
  profile.attributes = rest;
  const bool fits = profile.slices > 0 && profile.slices < 100 && profile.gigabytes > 0 &&
                    profile.gigabytes < 100000 && profile.compute <= profile.slices &&
                    are_attributes(rest);
  if (!fits) return std::nullopt;
  if (profile.compute == profile.slices) profile.compute = 0;
  return profile;
}

int distance(const MigProfile& a, const MigProfile& b) {
  return std::abs(a.gigabytes - b.gigabytes);
}

// "5CME" -> 5 and "+me"; the letter between is the vGPU's series.
std::optional<MigProfile> series_of(std::string_view text) {
  struct Suffix {
    std::string_view letters;
    std::string_view attributes;
  };
  static constexpr std::array suffixes = {Suffix{"", ""}, Suffix{"ME", "+me"},
                                          Suffix{"NOME", "-me"}, Suffix{"MEALL", "+me.all"},
                                          Suffix{"GFX", "+gfx"}};
  MigProfile profile;
  for (const std::string_view series : {"A", "B", "C", "Q"}) {
    std::string_view rest = text;
    profile.gigabytes = take_number(rest, series);
    if (profile.gigabytes == 0) continue;
    const auto suffix = std::ranges::find(suffixes, rest, &Suffix::letters);
    if (suffix == suffixes.end()) return std::nullopt;
    profile.attributes = suffix->attributes;
    return profile;
  }
  return std::nullopt;
}

}  // namespace

Result<MigProfile> parse_profile(std::string_view name) {
  if (auto profile = take_apart(name)) return *std::move(profile);
  return Error{ErrorCode::invalid_argument,
               cat(in_quotes(name), " is not a MIG profile"),
               {{"hint", "write slices and memory, as in 1g.10gb or 1g.10gb+me"}}};
}

bool same_profile(const MigProfile& a, const MigProfile& b) {
  const int rounding = std::max(1, std::max(a.gigabytes, b.gigabytes) / 20);
  return a.slices == b.slices && a.compute == b.compute && a.attributes == b.attributes &&
         distance(a, b) <= rounding;
}

std::optional<std::string> resolve_profile(std::string_view wanted,
                                           const std::vector<std::string>& names) {
  const auto exact = std::ranges::find(names, wanted);
  if (exact != names.end()) return *exact;
  const auto profile = take_apart(wanted);
  if (!profile) return std::nullopt;
  std::optional<std::string> nearest;
  int least = 0;
  for (const std::string& name : names) {
    const auto other = take_apart(name);
    if (!other || !same_profile(*profile, *other)) continue;
    const int away = distance(*profile, *other);
    if (nearest && away >= least) continue;
    nearest = name;
    least = away;
  }
  return nearest;
}

std::optional<MigProfile> profile_of_vgpu(std::string_view type_name) {
  const std::string_view name = trim(type_name);
  const std::string_view word = name.substr(name.find_last_of(' ') + 1);
  const auto parts = split(word, '-');
  if (parts.size() < 3) return std::nullopt;
  const auto slices = parse_int(parts[parts.size() - 2]);
  auto profile = series_of(parts.back());
  if (!profile || !slices || *slices < 1 || *slices > 99) return std::nullopt;
  profile->slices = static_cast<int>(*slices);
  return profile;
}

bool vgpu_takes(const MigProfile& type, const MigProfile& instance) {
  MigProfile plain = instance;
  if (plain.attributes == "+gfx" && type.attributes.empty()) plain.attributes.clear();
  return same_profile(type, plain);
}

}  // namespace fuse
