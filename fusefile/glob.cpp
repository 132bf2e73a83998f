#include "fusefile/glob.h"

#include <cstddef>
#include <optional>

namespace fuse {

namespace {

// Takes one UTF-8 character off `text`; a byte that begins none stands for
// itself.
std::string_view take_character(std::string_view& text) {
  std::size_t length = 1;
  while (length < 4 && length < text.size() &&
         (static_cast<unsigned char>(text[length]) & 0xC0U) == 0x80U) {
    ++length;
  }
  if (static_cast<unsigned char>(text[0]) < 0xC0U) length = 1;
  const std::string_view character = text.substr(0, length);
  text.remove_prefix(length);
  return character;
}

// Takes the end of a range off `text`: not - or ], unless escaped.
std::optional<std::string_view> take_bound(std::string_view& text) {
  if (text.empty() || text.front() == '-' || text.front() == ']') return std::nullopt;
  if (text.front() == '\\') {
    text.remove_prefix(1);
    if (text.empty()) return std::nullopt;
  }
  const std::string_view bound = take_character(text);
  if (text.empty()) return std::nullopt;
  return bound;
}

// Takes a [..] off `pattern` and tells whether `character` is in it; nothing
// when it is malformed.
std::optional<bool> take_class(std::string_view& pattern, std::string_view character) {
  pattern.remove_prefix(1);
  const bool negated = pattern.starts_with('^');
  if (negated) pattern.remove_prefix(1);
  bool found = false;
  for (bool first = true;; first = false) {
    if (!first && pattern.starts_with(']')) break;
    const auto low = take_bound(pattern);
    if (!low) return std::nullopt;
    auto high = low;
    if (pattern.starts_with('-')) {
      pattern.remove_prefix(1);
      high = take_bound(pattern);
      if (!high) return std::nullopt;
    }
    // UTF-8 sorts as the characters do.
    if (*low <= character && character <= *high) found = true;
  }
  pattern.remove_prefix(1);
  return found != negated;
}

// Takes what stands for one character off `pattern`, and that character off
// `name`; false when they do not match.
bool take_one(std::string_view& pattern, std::string_view& name) {
  if (name.empty()) return false;
  const std::string_view character = take_character(name);
  switch (pattern.front()) {
    case '[':
      return take_class(pattern, character).value_or(false);
    case '?':
      pattern.remove_prefix(1);
      return true;
    case '\\':
      pattern.remove_prefix(1);
      break;
    default:
      break;
  }
  return !pattern.empty() && take_character(pattern) == character;
}

}  // namespace

bool is_glob(std::string_view pattern) {
  while (!pattern.empty()) {
    if (pattern.front() == '[') {
      if (!take_class(pattern, "")) return false;
      continue;
    }
    if (pattern.front() == '\\') pattern.remove_prefix(1);
    if (pattern.empty()) return false;
    take_character(pattern);
  }
  return true;
}

bool glob_matches(std::string_view pattern, std::string_view name) {
  // Where to go on when what follows the last star does not match.
  std::optional<std::string_view> after_star;
  std::string_view retry;
  while (true) {
    if (pattern.starts_with('*')) {
      pattern.remove_prefix(1);
      after_star = pattern;
      retry = name;
      continue;
    }
    if (pattern.empty() && name.empty()) return true;
    if (!pattern.empty() && take_one(pattern, name)) continue;
    if (!after_star || retry.empty()) return false;
    take_character(retry);
    pattern = *after_star;
    name = retry;
  }
}

}  // namespace fuse
