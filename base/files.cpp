#include "base/files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "base/fd.h"
#include "base/text.h"

namespace fuse {

Result<void> write_all(int fd, std::string_view bytes, std::string_view what) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(fd, bytes.data(), bytes.size());
    if (wrote >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(wrote));
    } else if (errno != EINTR) {
      return errno_error(what, errno);
    }
  }
  return {};
}

bool is_file_at(int fd, const fs::path& path) {
  struct stat open {};
  struct stat there {};
  return ::fstat(fd, &open) == 0 && ::stat(path.c_str(), &there) == 0 &&
         open.st_dev == there.st_dev && open.st_ino == there.st_ino;
}

Result<void> sync_dir(const fs::path& dir) {
  const fs::path real = dir.empty() ? fs::path(".") : dir;
  const Fd fd(::open(real.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!fd.valid()) return errno_error(cat("open folder ", real.native()), errno);
  if (::fsync(fd.get()) < 0) return errno_error(cat("sync folder ", real.native()), errno);
  return {};
}

bool has_entry(Host& host, const fs::path& path) {
  const auto names = host.list_dir(path.parent_path());
  return names && std::ranges::find(*names, path.filename().native()) != names->end();
}

}  // namespace fuse
