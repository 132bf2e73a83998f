#include "cmd/tree_unpack.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/files.h"
#include "base/text.h"
#include "cmd/output.h"

namespace fuse::cmd {

namespace {

constexpr std::uint32_t owner_all = 0700;
constexpr std::uint32_t plain_bits = 0777;

Error cannot(std::string_view what, std::string_view path) {
  return errno_error(cat(what, " ", printable(path)), errno);
}

// The names of a path; an error when it leads out of its folder.
Result<std::vector<std::string>> names_of(const std::string& path) {
  std::vector<std::string> names;
  for (std::string& name : split(path, '/')) {
    if (name.empty() || name == ".") continue;
    if (name == "..") {
      return Error{ErrorCode::internal,
                   cat("the archive names a file outside of it: ", printable(path))};
    }
    names.push_back(std::move(name));
  }
  return names;
}

// A folder in another one that is not a link to elsewhere.
Fd open_folder(int in, const std::string& name) {
  return Fd(::openat(in, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

}  // namespace

Result<TreeUnpacker::Place> TreeUnpacker::place_of(const std::vector<std::string>& names) {
  const std::vector<std::string> folders(names.begin(), std::prev(names.end()));
  if (folders.empty()) return Place{folder_.get(), names.back()};
  if (parent_.valid() && folders == parent_names_) return Place{parent_.get(), names.back()};
  parent_.reset();
  for (const std::string& name : folders) {
    const int in = parent_.valid() ? parent_.get() : folder_.get();
    ::mkdirat(in, name.c_str(), owner_all | 055U);
    Fd next = open_folder(in, name);
    if (!next.valid()) return cannot("open", join(folders, "/"));
    parent_ = std::move(next);
  }
  parent_names_ = folders;
  return Place{parent_.get(), names.back()};
}

Result<void> TreeUnpacker::entry(const TarEntry& entry) {
  entry_ = entry;
  auto names = names_of(entry.path);
  if (!names) return names.error();
  if (names->empty()) {
    if (sets_its_mode_) late_modes_.emplace_back(std::vector<std::string>(), entry.mode);
    return {};
  }
  if (entry.type == TarEntry::Type::other) {
    ++skipped_;
    return {};
  }
  const auto place = place_of(*names);
  if (!place) return place.error();
  if (entry.type == TarEntry::Type::folder) {
    if ((entry.mode & owner_all) != owner_all) late_modes_.emplace_back(*names, entry.mode);
    return add_folder(*place, entry.mode | owner_all);
  }
  // Another of the same name gives way, unless it is a folder.
  if (::unlinkat(place->folder, place->name.c_str(), 0) < 0 && errno != ENOENT) {
    return cannot("replace", entry.path);
  }
  return entry.type == TarEntry::Type::file ? open_file(*place) : add_link(*place, entry);
}

Result<void> TreeUnpacker::add_folder(const Place& place, std::uint32_t mode) {
  if (::mkdirat(place.folder, place.name.c_str(), owner_all) < 0 && errno != EEXIST) {
    return cannot("create", entry_.path);
  }
  const Fd made = open_folder(place.folder, place.name);
  if (!made.valid()) return cannot("open", entry_.path);
  if (::fchmod(made.get(), mode & plain_bits) < 0) return cannot("chmod", entry_.path);
  return {};
}

Result<void> TreeUnpacker::add_link(const Place& place, const TarEntry& entry) {
  if (entry.type == TarEntry::Type::symlink) {
    const int made = ::symlinkat(entry.target.c_str(), place.folder, place.name.c_str());
    return made < 0 ? cannot("create", entry.path) : Result<void>();
  }
  const auto names = names_of(entry.target);
  if (!names) return names.error();
  if (names->empty()) return Error{ErrorCode::internal, "a link in the archive leads nowhere"};
  // The place's folder is closed when the other one is opened.
  const Fd folder(::fcntl(place.folder, F_DUPFD_CLOEXEC, 3));
  const auto other = place_of(*names);
  if (!other) return other.error();
  if (::linkat(other->folder, other->name.c_str(), folder.get(), place.name.c_str(), 0) < 0) {
    return cannot("link", entry.path);
  }
  return {};
}

Result<void> TreeUnpacker::open_file(const Place& place) {
  file_ = Fd(::openat(place.folder, place.name.c_str(),
                      O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file_.valid()) return cannot("create", entry_.path);
  ++files_;
  return {};
}

Result<void> TreeUnpacker::data(std::string_view bytes) {
  if (!file_.valid()) return {};
  bytes_ += bytes.size();
  return write_all(file_.get(), bytes, cat("write ", printable(entry_.path)));
}

Result<void> TreeUnpacker::end() {
  if (!file_.valid()) return {};
  if (::fchmod(file_.get(), entry_.mode & plain_bits) < 0) return cannot("chmod", entry_.path);
  file_.reset();
  return {};
}

Result<void> TreeUnpacker::finish() {
  // The innermost first.
  for (auto late = late_modes_.rbegin(); late != late_modes_.rend(); ++late) {
    const auto& [names, mode] = *late;
    if (names.empty()) {
      if (::fchmod(folder_.get(), mode & plain_bits) < 0) return cannot("chmod", ".");
      continue;
    }
    const auto place = place_of(names);
    if (!place) return place.error();
    const Fd folder = open_folder(place->folder, place->name);
    if (!folder.valid()) continue;  // a later entry of the same name
    if (::fchmod(folder.get(), mode & plain_bits) < 0) return cannot("chmod", join(names, "/"));
  }
  return {};
}

}  // namespace fuse::cmd
