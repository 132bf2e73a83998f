#include "hostmode/image_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <memory>
#include <string>

#include "base/text.h"

namespace fuse {
namespace {

Result<Fd> open_lock(const fs::path& file) {
  Fd fd(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!fd.valid()) return errno_error(cat("open ", file.native()), errno);
  return fd;
}

struct CloseDir {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

// Empties the folder `name` of `parent` and removes it.
Result<void> remove_dir_at(int parent, const std::string& name, dev_t file_system) {
  Fd fd(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (!fd.valid() || ::fstat(fd.get(), &status) < 0) {
    return errno_error(cat("open folder ", name), errno);
  }
  if (status.st_dev != file_system) {
    return Error{ErrorCode::conflict, cat("something is mounted at ", name)};
  }
  const int dir_fd = fd.get();
  const std::unique_ptr<DIR, CloseDir> dir(::fdopendir(fd.release()));
  if (!dir) return errno_error(cat("read folder ", name), errno);
  while (const dirent* entry = ::readdir(dir.get())) {
    const std::string child = entry->d_name;
    if (child == "." || child == "..") continue;
    if (::unlinkat(dir_fd, child.c_str(), 0) == 0) continue;
    if (errno != EISDIR && errno != EPERM) return errno_error(cat("remove ", child), errno);
    if (auto done = remove_dir_at(dir_fd, child, file_system); !done) return done;
  }
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) == 0) return {};
  return errno_error(cat("remove folder ", name), errno);
}

}  // namespace

Result<Fd> lock_file(const fs::path& file, LockMode mode) {
  auto fd = open_lock(file);
  if (!fd) return fd;
  while (::flock(fd->get(), mode == LockMode::shared ? LOCK_SH : LOCK_EX) < 0) {
    if (errno != EINTR) return errno_error(cat("lock ", file.native()), errno);
  }
  return fd;
}

Result<std::optional<Fd>> try_lock_file(const fs::path& file) {
  auto fd = open_lock(file);
  if (!fd) return fd.error();
  if (::flock(fd->get(), LOCK_EX | LOCK_NB) == 0) {
    return std::optional<Fd>(std::move(fd).value());
  }
  if (errno == EWOULDBLOCK) return std::optional<Fd>();
  return errno_error(cat("lock ", file.native()), errno);
}

Result<std::uint64_t> qcow2_virtual_size(const fs::path& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error(cat("open ", file.native()), errno);
  std::array<unsigned char, 32> header{};
  const ssize_t got = ::pread(fd.get(), header.data(), header.size(), 0);
  if (got < 0) return errno_error(cat("read ", file.native()), errno);
  constexpr std::array<unsigned char, 4> magic{'Q', 'F', 'I', 0xfb};
  if (got != static_cast<ssize_t>(header.size()) ||
      !std::equal(magic.begin(), magic.end(), header.begin())) {
    return Error{ErrorCode::invalid_argument, cat(file.native(), " is not a qcow2 file")};
  }
  std::uint64_t size = 0;
  for (std::size_t i = 24; i < 32; ++i) size = size << 8U | header.at(i);
  return size;
}

void mark_used(const fs::path& file) {
  static_cast<void>(::utimensat(AT_FDCWD, file.c_str(), nullptr, 0));
}

bool used_within_the_hour(const fs::path& file) {
  struct stat status {};
  if (::lstat(file.c_str(), &status) < 0) return false;
  return std::time(nullptr) - status.st_mtime < std::chrono::seconds(std::chrono::hours(1)).count();
}

Result<void> remove_tree_of_one_file_system(const fs::path& dir) {
  struct stat status {};
  if (::lstat(dir.c_str(), &status) < 0) {
    if (errno == ENOENT) return {};
    return errno_error(cat("remove ", dir.native()), errno);
  }
  const Fd parent(::open(dir.parent_path().c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent.valid()) return errno_error(cat("open ", dir.parent_path().native()), errno);
  auto removed = remove_dir_at(parent.get(), dir.filename().native(), status.st_dev);
  if (!removed) return in_context(cat("remove ", dir.native()), removed.error());
  return {};
}

}  // namespace fuse
