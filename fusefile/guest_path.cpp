#include "fusefile/guest_path.h"

#include <algorithm>
#include <vector>

#include "base/text.h"

namespace fuse {

std::string clean_path(std::string_view path) {
  const bool absolute = path.starts_with('/');
  std::vector<std::string> names;
  for (std::string& name : split(path, '/')) {
    if (name.empty() || name == ".") continue;
    const bool up = name == "..";
    if (up && !names.empty() && names.back() != "..") {
      names.pop_back();
    } else if (!up || !absolute) {
      names.push_back(std::move(name));
    }
  }
  const std::string joined = join(names, "/");
  if (absolute) return cat("/", joined);
  return joined.empty() ? "." : joined;
}

std::string parent_path(std::string_view path) {
  const std::size_t slash = path.rfind('/');
  return clean_path(slash == std::string_view::npos ? "" : path.substr(0, slash + 1));
}

std::string resolve_path(std::string_view base, std::string_view path) {
  return clean_path(path.starts_with('/') ? std::string(path) : cat(base, "/", path));
}

bool has_parent_segment(std::string_view path) {
  const auto names = split(path, '/');
  return std::find(names.begin(), names.end(), "..") != names.end();
}

bool has_newline_or_nul(std::string_view path) {
  return path.find('\n') != std::string_view::npos || path.find('\0') != std::string_view::npos;
}

bool is_at_or_below(std::string_view path, std::string_view dir) {
  return path == dir || (path.starts_with(dir) && (dir == "/" || path[dir.size()] == '/'));
}

}  // namespace fuse
