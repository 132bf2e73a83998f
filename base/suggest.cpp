#include "base/suggest.h"

#include <algorithm>

#include "base/edit_distance.h"
#include "base/quote.h"
#include "base/text.h"

namespace fuse {

namespace {

constexpr std::size_t most_letters = 2;

std::size_t common_beginning(std::string_view a, std::string_view b) {
  return static_cast<std::size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first -
                                  a.begin());
}

}  // namespace

std::vector<std::string_view> suggestions(std::string_view word,
                                          std::span<const std::string_view> known) {
  const std::string written = lowercase(word);
  std::vector<std::string_view> nearest;
  std::size_t best = most_letters;
  const auto is_far = [&](std::string_view name) {
    return word.size() > name.size() + best || name.size() > word.size() + best;
  };
  for (const std::string_view name : known) {
    if (is_far(name)) continue;
    const std::size_t distance = edit_distance(written, name);
    if (distance > best || distance >= std::max(word.size(), name.size())) continue;
    if (distance < best) nearest.clear();
    best = distance;
    nearest.push_back(name);
  }
  std::stable_sort(nearest.begin(), nearest.end(), [word](std::string_view a, std::string_view b) {
    return common_beginning(a, word) > common_beginning(b, word);
  });
  return nearest;
}

std::string did_you_mean(std::span<const std::string_view> names) {
  if (names.empty()) return "";
  std::string text = ", did you mean ";
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += in_quotes(names[i]);
  }
  return text + "?";
}

}  // namespace fuse
