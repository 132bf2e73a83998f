#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/fd.h"
#include "base/text.h"
#include "fusefile/sources.h"

namespace fuse {

namespace {

SourceKind kind_of_mode(mode_t mode) {
  if (S_ISREG(mode)) return SourceKind::regular;
  if (S_ISDIR(mode)) return SourceKind::directory;
  if (S_ISLNK(mode)) return SourceKind::symlink;
  return SourceKind::other;
}

}  // namespace

Result<SourceInfo> PosixSourceTree::inspect(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return errno_error(path.native(), errno);
  return SourceInfo{kind_of_mode(status.st_mode), static_cast<std::uint64_t>(status.st_size),
                    (status.st_mode & S_IXUSR) != 0};
}

Result<fs::path> PosixSourceTree::canonical(const fs::path& path) {
  std::error_code error;
  fs::path resolved = fs::canonical(path, error);
  if (error) return errno_error(path.native(), error.value());
  return resolved;
}

Result<std::vector<std::string>> PosixSourceTree::list(const fs::path& dir) {
  std::error_code error;
  std::vector<std::string> names;
  fs::directory_iterator it(dir, error);
  while (!error && it != fs::directory_iterator()) {
    names.push_back(it->path().filename().native());
    it.increment(error);
  }
  if (error) return errno_error(dir.native(), error.value());
  std::sort(names.begin(), names.end());
  return names;
}

Result<std::string> PosixSourceTree::read(const fs::path& file, std::uint64_t most) {
  // Not blocking, so that a pipe put in the file's place cannot hold us.
  const Fd fd(::open(file.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK));
  if (!fd.valid()) return errno_error(file.native(), errno);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(file.native(), errno);
  if (!S_ISREG(status.st_mode)) {
    return Error{ErrorCode::invalid_argument, cat(file.native(), ": not a regular file")};
  }
  std::string bytes;
  std::string chunk(64U << 10U, '\0');
  while (true) {
    const ssize_t count = ::read(fd.get(), chunk.data(), chunk.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return errno_error(file.native(), errno);
    if (count == 0) return bytes;
    bytes.append(chunk, 0, static_cast<std::size_t>(count));
    if (bytes.size() > most) {
      return Error{ErrorCode::payload_too_large,
                   cat(file.native(), ": more than ", most, " bytes")};
    }
  }
}

}  // namespace fuse
