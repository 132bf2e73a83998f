#include "fusefile/grammar.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace fuse {

namespace {

constexpr std::size_t longest_label = 63;

bool is_lower(char c) {
  return c >= 'a' && c <= 'z';
}
bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}
bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_alphanumeric(char c) {
  return is_lower(c) || is_upper(c) || is_digit(c);
}
bool is_octal(char c) {
  return c >= '0' && c <= '7';
}

}  // namespace

bool is_dns_label(std::string_view text) {
  if (text.empty() || text.size() > longest_label) return false;
  const auto is_edge = [](char c) { return is_lower(c) || is_digit(c); };
  return is_edge(text.front()) && is_edge(text.back()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_edge(c) || c == '-'; });
}

bool is_placement_label(std::string_view text) {
  if (text.empty() || text.size() > longest_label) return false;
  return is_alphanumeric(text.front()) && is_alphanumeric(text.back()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '-' || c == '.' || c == '_'; });
}

bool is_env_name(std::string_view text) {
  return !text.empty() && !is_digit(text.front()) &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return is_alphanumeric(c) || c == '_'; });
}

bool is_octal_mode(std::string_view text) {
  if (text.size() == 4 && text.front() == '0') text.remove_prefix(1);
  return text.size() == 3 && std::all_of(text.begin(), text.end(), is_octal);
}

bool is_kind_without_mig(std::string_view gpu_kind) {
  constexpr std::array<std::string_view, 11> kinds{"v100", "t4",    "p100", "p40", "k80", "rtx",
                                                   "gtx",  "titan", "l4",   "l40", "l40s"};
  return std::any_of(kinds.begin(), kinds.end(), [gpu_kind](std::string_view kind) {
    return contains_ignoring_case(gpu_kind, kind);
  });
}

std::string to_dns_label(std::string_view text) {
  std::string label;
  for (const char c : lowercase(text)) {
    if (is_lower(c) || is_digit(c)) {
      label += c;
    } else if (!label.empty() && label.back() != '-') {
      label += '-';
    }
    if (label.size() == longest_label) break;
  }
  while (!label.empty() && label.back() == '-') label.pop_back();
  return label;
}

}  // namespace fuse
