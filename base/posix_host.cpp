#include "base/posix_host.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <limits>
#include <system_error>

#include "base/bounded_read.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/ids.h"
#include "base/posix_process.h"
#include "base/text.h"

namespace fuse {

fs::path PosixHost::at(const fs::path& path) const {
  if (root_.empty() || path.is_relative()) return path;
  return root_ / path.relative_path();
}

Result<std::string> PosixHost::read_file(const fs::path& file) {
  const fs::path real = at(file);
  const Fd fd(::open(real.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error(cat("open ", file.native()), errno);
  return read_at_most(fd.get(), file.native(), std::numeric_limits<std::uint64_t>::max());
}

Result<void> PosixHost::write_file(const fs::path& file, std::string_view text) {
  const fs::path real = at(file);
  const Fd fd(::open(real.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!fd.valid()) return errno_error(cat("open ", file.native()), errno);
  return write_all(fd.get(), text, cat("write to ", file.native()));
}

Result<void> PosixHost::replace_file(const fs::path& file, std::string_view text, mode_t mode) {
  const fs::path real = at(file);
  const fs::path temporary = cat(real.native(), ".new-", random_hex(6));
  const auto write = [&]() -> Result<void> {
    const Fd fd(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode));
    if (!fd.valid()) return errno_error(cat("create ", temporary.native()), errno);
    if (auto done = write_all(fd.get(), text, cat("write ", file.native())); !done) return done;
    if (::fchmod(fd.get(), mode) < 0) return errno_error(cat("chmod ", file.native()), errno);
    if (::fsync(fd.get()) < 0) return errno_error(cat("sync ", file.native()), errno);
    if (::rename(temporary.c_str(), real.c_str()) < 0) {
      return errno_error(cat("rename to ", file.native()), errno);
    }
    return sync_dir(real.parent_path());
  };
  auto written = write();
  if (!written) ::unlink(temporary.c_str());
  return written;
}

Result<fs::path> PosixHost::read_link(const fs::path& link) {
  std::error_code failure;
  fs::path target = fs::read_symlink(at(link), failure);
  if (failure) return errno_error(cat("read link ", link.native()), failure.value());
  return target;
}

Result<std::vector<std::string>> PosixHost::list_dir(const fs::path& dir) {
  std::error_code failure;
  std::vector<std::string> names;
  for (fs::directory_iterator it(at(dir), failure), end; !failure && it != end;
       it.increment(failure)) {
    names.push_back(it->path().filename().native());
  }
  if (failure) return errno_error(cat("list ", dir.native()), failure.value());
  std::ranges::sort(names);
  return names;
}

Result<void> PosixHost::make_dirs(const fs::path& dir, mode_t mode) {
  const fs::path real = at(dir);
  if (::mkdir(real.c_str(), mode) == 0) return {};
  if (errno == EEXIST) {
    std::error_code failure;
    if (fs::is_directory(real, failure)) return {};
    return errno_error(cat("create folder ", dir.native()), ENOTDIR);
  }
  const int first = errno;
  if (first != ENOENT || !dir.has_parent_path() || dir.parent_path() == dir) {
    return errno_error(cat("create folder ", dir.native()), first);
  }
  if (auto parent = make_dirs(dir.parent_path(), mode); !parent) return parent;
  if (::mkdir(real.c_str(), mode) == 0 || errno == EEXIST) return {};
  return errno_error(cat("create folder ", dir.native()), errno);
}

Result<void> PosixHost::remove_all(const fs::path& path) {
  std::error_code failure;
  fs::remove_all(at(path), failure);
  if (failure) return errno_error(cat("remove ", path.native()), failure.value());
  return {};
}

Result<std::unique_ptr<Process>> PosixHost::spawn(const SpawnSpec& spec) {
  return spawn_process(spec);
}

}  // namespace fuse
