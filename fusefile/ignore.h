#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fuse {

// Which paths below a folder `copy` leaves out: gitignore's syntax, of which
// the last pattern that matches decides.
class IgnoreRules {
 public:
  // What is left out without any file.
  IgnoreRules();
  // Those patterns, one a line.
  static std::string_view defaults();
  // Adds the lines of a .fuseignore; invalid_argument names the line of a
  // malformed pattern.
  Result<void> add(std::string_view text);
  // `path` is relative to the folder that is copied.
  [[nodiscard]] bool ignores(std::string_view path, bool is_folder) const;

 private:
  struct Pattern {
    bool negated = false;
    bool folders_only = false;
    bool anchored = false;  // else the last name alone has to match
    std::vector<std::string> names{};
  };
  static bool matches(const Pattern& pattern, const std::vector<std::string>& names);

  std::vector<Pattern> patterns_{};
};

}  // namespace fuse
