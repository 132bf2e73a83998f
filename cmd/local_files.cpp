#include "cmd/local_files.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>

#include "base/files.h"
#include "base/ids.h"
#include "base/text.h"
#include "cmd/output.h"

namespace fuse::cmd {

namespace {

constexpr std::size_t piece = 64U << 10U;
constexpr std::uint32_t plain_bits = 0777;

Error cannot(std::string_view what, const fs::path& path) {
  return errno_error(cat(what, " ", printable(path.native())), errno);
}

}  // namespace

CopyKind local_kind(const fs::path& path) {
  struct stat found {};
  if (::stat(path.c_str(), &found) == 0) {
    if (S_ISDIR(found.st_mode)) return CopyKind::folder;
    return S_ISREG(found.st_mode) ? CopyKind::file : CopyKind::other;
  }
  if (::lstat(path.c_str(), &found) == 0) return CopyKind::dangling;
  const std::string parent = parent_of(path.native());
  const bool has_folder = ::stat(parent.c_str(), &found) == 0 && S_ISDIR(found.st_mode);
  return has_folder ? CopyKind::none : CopyKind::no_folder;
}

FileWriter::FileWriter(FileWriter&& other) noexcept
    : path_(std::move(other.path_)),
      beside_(std::exchange(other.beside_, {})),
      fd_(std::move(other.fd_)) {}

FileWriter::~FileWriter() {
  if (!beside_.empty()) ::unlink(beside_.c_str());
}

Result<FileWriter> FileWriter::open(const fs::path& path) {
  const CopyKind kind = local_kind(path);
  if (kind == CopyKind::other) {
    Fd fd(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!fd.valid()) return cannot("open", path);
    return FileWriter(path, {}, std::move(fd));
  }
  // Through a link, to the file that it leads to.
  std::error_code failure;
  const fs::path place = kind == CopyKind::file ? fs::canonical(path, failure) : path;
  if (failure) return errno_error(cat("find ", printable(path.native())), failure.value());
  fs::path beside = fs::path(parent_of(place.native())) / cat(".fuse-cp-", random_hex(8));
  Fd fd(::open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd.valid()) return cannot("create", place);
  return FileWriter(place, std::move(beside), std::move(fd));
}

Result<void> FileWriter::write(std::string_view bytes) {
  return write_all(fd_.get(), bytes, cat("write ", printable(path_.native())));
}

Result<void> FileWriter::commit(std::uint32_t mode) {
  if (beside_.empty()) return {};
  if (::fchmod(fd_.get(), mode & plain_bits) < 0) return cannot("chmod", path_);
  if (::rename(beside_.c_str(), path_.c_str()) < 0) return cannot("replace", path_);
  beside_.clear();
  return {};
}

Result<void> read_all(int fd, std::string_view name, const ByteSink& sink) {
  std::array<char, piece> buffer;  // NOLINT(*-member-init): written by read
  for (;;) {
    const ssize_t got = ::read(fd, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(cat("read ", printable(name)), errno);
    if (got == 0 || !sink({buffer.data(), static_cast<std::size_t>(got)})) return {};
  }
}

}  // namespace fuse::cmd
