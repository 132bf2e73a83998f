#include "fusefile/ignore.h"

#include <algorithm>
#include <span>
#include <utility>

#include "base/quote.h"
#include "base/text.h"
#include "fusefile/glob.h"

namespace fuse {

namespace {

constexpr std::string_view default_patterns =
    ".git/\nnode_modules/\n__pycache__/\n.venv/\nvenv/\ntarget/\ndist/\nbuild/\n"
    ".DS_Store\n*.pyc\n.env\n.env.*\n*.pem\n*.key\n";

std::string_view without_trailing_blanks(std::string_view line) {
  const std::size_t last = line.find_last_not_of(" \t\r");
  return last == std::string_view::npos ? "" : line.substr(0, last + 1);
}

// `**` stands for any number of names, but at the end for one at least.
bool names_match(std::span<const std::string> pattern, std::span<const std::string> names) {
  if (pattern.empty()) return names.empty();
  if (pattern.front() == "**") {
    if (pattern.size() == 1) return !names.empty();
    for (std::size_t skip = 0; skip <= names.size(); ++skip) {
      if (names_match(pattern.subspan(1), names.subspan(skip))) return true;
    }
    return false;
  }
  return !names.empty() && glob_matches(pattern.front(), names.front()) &&
         names_match(pattern.subspan(1), names.subspan(1));
}

// Many ** in one pattern would take very long, and say no more than one.
std::vector<std::string> without_repeated_stars(std::vector<std::string> names) {
  const auto end = std::unique(names.begin(), names.end(),
                               [](const auto& a, const auto& b) { return a == "**" && b == "**"; });
  names.erase(end, names.end());
  return names;
}

}  // namespace

IgnoreRules::IgnoreRules() {
  static_cast<void>(add(defaults()));
}

std::string_view IgnoreRules::defaults() {
  return default_patterns;
}

Result<void> IgnoreRules::add(std::string_view text) {
  int number = 0;
  for (const std::string& raw : split(text, '\n')) {
    ++number;
    std::string_view line = without_trailing_blanks(raw);
    if (line.empty() || line.front() == '#') continue;
    const std::string_view written = line;
    Pattern pattern;
    if (line.front() == '!') {
      pattern.negated = true;
      line.remove_prefix(1);
    }
    if (line.ends_with('/')) {
      pattern.folders_only = true;
      line.remove_suffix(1);
    }
    pattern.anchored = line.find('/') != std::string_view::npos;
    if (line.starts_with('/')) line.remove_prefix(1);
    if (line.empty()) continue;
    pattern.names = without_repeated_stars(split(line, '/'));
    if (!std::all_of(pattern.names.begin(), pattern.names.end(), is_glob)) {
      return Error{ErrorCode::invalid_argument,
                   cat("line ", number, ": malformed pattern ", in_quotes(written))};
    }
    patterns_.push_back(std::move(pattern));
  }
  return {};
}

bool IgnoreRules::matches(const Pattern& pattern, const std::vector<std::string>& names) {
  if (!pattern.anchored) return glob_matches(pattern.names.front(), names.back());
  return names_match(pattern.names, names);
}

bool IgnoreRules::ignores(std::string_view path, bool is_folder) const {
  const std::vector<std::string> names = split(path, '/');
  for (auto pattern = patterns_.rbegin(); pattern != patterns_.rend(); ++pattern) {
    if ((is_folder || !pattern->folders_only) && matches(*pattern, names)) {
      return !pattern->negated;
    }
  }
  return false;
}

}  // namespace fuse
