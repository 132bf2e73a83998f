#pragma once

#include <map>
#include <string>
#include <string_view>

#include "fusefile/diagnostics.h"

namespace fuse {

// Where the fields of a Fusefile stand, by their paths.
class Locations {
 public:
  // The first place that is given for a path stays.
  void add(std::string path, Location where);
  // The place of the field, or, when it is not in the file, of the nearest
  // field around it: "files[0].mode", "files[0]", "files".
  [[nodiscard]] Location find(std::string_view path) const;

 private:
  std::map<std::string, Location, std::less<>> places_{};
};

}  // namespace fuse
