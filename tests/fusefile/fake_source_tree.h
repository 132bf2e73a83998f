#pragma once

#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "fusefile/sources.h"

namespace fuse {

// A user's files that exist only in memory.  Folders are there when something
// is below them.
struct FakeSourceTree final : SourceTree {
  struct Entry {
    std::string bytes{};
    bool executable = false;
    std::string link{};  // the target of a symlink, absolute
    bool special = false;
  };
  std::map<std::string, Entry> entries{};
  std::vector<std::string> listed{};  // every folder that was listed
  std::vector<std::string> inspected{};
  std::set<std::string> closed{};  // files and folders that may not be read

  void file(const std::string& path, std::string bytes = "", bool executable = false) {
    entries[path] = {std::move(bytes), executable};
  }
  void link(const std::string& path, std::string target) { entries[path].link = std::move(target); }

  static Error missing(const fs::path& path) {
    return {ErrorCode::not_found, cat(path.native(), ": No such file or directory")};
  }
  static Error refused(const fs::path& path) {
    return {ErrorCode::internal, cat(path.native(), ": Permission denied")};
  }
  [[nodiscard]] bool is_folder(const std::string& path) const {
    const std::string below = path == "/" ? path : path + "/";
    const auto it = entries.lower_bound(below);
    return it != entries.end() && it->first.starts_with(below);
  }

  Result<SourceInfo> inspect(const fs::path& path) override {
    inspected.push_back(path.native());
    if (const auto it = entries.find(path.native()); it != entries.end()) {
      if (!it->second.link.empty()) return SourceInfo{SourceKind::symlink, 0, true};
      if (it->second.special) return SourceInfo{SourceKind::other, 0, false};
      return SourceInfo{SourceKind::regular, it->second.bytes.size(), it->second.executable};
    }
    if (is_folder(path.native())) return SourceInfo{SourceKind::directory, 0, true};
    return missing(path);
  }
  Result<fs::path> canonical(const fs::path& path) override {
    fs::path at = "/";
    for (const fs::path& name : path.lexically_normal().relative_path()) {
      if (name.empty()) continue;
      at /= name;
      if (const auto it = entries.find(at.native());
          it != entries.end() && !it->second.link.empty()) {
        at = it->second.link;
      }
    }
    if (!entries.contains(at.native()) && !is_folder(at.native())) return missing(path);
    return at;
  }
  Result<std::vector<std::string>> list(const fs::path& dir) override {
    listed.push_back(dir.native());
    if (closed.contains(dir.native())) return refused(dir);
    std::set<std::string> names;
    const std::string below = dir.native() + "/";
    for (const auto& [path, entry] : entries) {
      if (path.starts_with(below)) names.insert(split(path.substr(below.size()), '/').front());
    }
    return std::vector<std::string>(names.begin(), names.end());
  }
  Result<std::string> read(const fs::path& file, std::uint64_t most) override {
    const auto it = entries.find(file.native());
    if (it == entries.end()) return missing(file);
    if (closed.contains(file.native())) return refused(file);
    if (it->second.bytes.size() > most) return Error{ErrorCode::payload_too_large, "too large"};
    return it->second.bytes;
  }
};

}  // namespace fuse
