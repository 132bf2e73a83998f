#include "fusefile/locations.h"

#include <algorithm>
#include <utility>

namespace fuse {

void Locations::add(std::string path, Location where) {
  places_.emplace(std::move(path), where);
}

Location Locations::find(std::string_view path) const {
  while (true) {
    const auto it = places_.find(path);
    if (it != places_.end()) return it->second;
    if (path.empty()) return {};
    const std::size_t end = path.find_last_of(".[");
    path = path.substr(0, end == std::string_view::npos ? 0 : end);
  }
}

}  // namespace fuse
