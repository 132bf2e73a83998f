#pragma once

#include <set>
#include <string>
#include <vector>

#include "base/host.h"

namespace fuse {

// What VMs that are gone must not leave behind: processes that work in the
// scratch folder or name it, zombies of ours, open descriptors of ours, files in
// the agent's state.
class LeakCheck {
 public:
  // Compares with how things are now.
  explicit LeakCheck(fs::path scratch);
  // Each leak in words; none is what is hoped for.
  [[nodiscard]] std::vector<std::string> leaks() const;

 private:
  [[nodiscard]] std::set<std::string> processes() const;
  [[nodiscard]] std::set<std::string> files() const;

  fs::path scratch_;
  std::set<std::string> processes_;
  std::multiset<std::string> descriptors_;
  std::set<std::string> files_;
};

}  // namespace fuse
