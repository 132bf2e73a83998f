#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "fusefile/diagnostics.h"
#include "fusefile/locations.h"

namespace fuse {

// Collects what a pass over a Fusefile finds.
class Report {
 public:
  explicit Report(Locations& locations) : locations_(locations) {}

  // Notes where a field stands; problems with it are shown there.
  void place(const std::string& path, Location where) { locations_.add(path, where); }
  // `hint` says what to write instead.
  void error(ProblemCode code, std::string_view path, std::string message, std::string hint);
  // With a place of its own.
  void error_at(Location where, ProblemCode code, std::string_view path, std::string message,
                std::string hint);
  // Without a path: about several fields, shown at `near`.
  void error_near(std::string_view near, ProblemCode code, std::string message, std::string hint);
  // Counts a field as wrong without a problem of its own.
  void blame(const std::string& path) { blamed_.insert(path); }
  // Whether something was wrong with exactly this field.
  [[nodiscard]] bool blamed(std::string_view path) const;
  [[nodiscard]] Location where(std::string_view path) const { return locations_.find(path); }

  // Moves everything found to `diagnostics`.
  void finish(Diagnostics& diagnostics);

 private:
  Locations& locations_;
  std::vector<Diagnostic> found_{};
  std::set<std::string, std::less<>> blamed_{};
};

// "resources.cpus"; "cpus" at the top.  A name that is empty or has something in it that
// would not show is quoted, a very long one is cut.
std::string path_below(std::string_view path, std::string_view name);
std::string path_item(std::string_view path, std::size_t index);

}  // namespace fuse
