#include "hostmode/initramfs.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <vector>

#include "base/fd.h"
#include "base/files.h"
#include "base/ids.h"
#include "base/text.h"

namespace fuse {
namespace {

constexpr std::size_t archive_alignment = 512;

struct EntryHeader {
  std::uint32_t inode = 0;
  std::uint32_t mode = 0;
  std::uint64_t size = 0;
  unsigned major = 0;
  unsigned minor = 0;
};

void append_hex(std::string& out, std::uint64_t value) {
  constexpr std::string_view digits = "0123456789abcdef";
  for (int shift = 28; shift >= 0; shift -= 4) out += digits[(value >> shift) & 0xfU];
}

void pad_to(std::string& out, std::size_t alignment) {
  const std::size_t over = out.size() % alignment;
  if (over != 0) out.append(alignment - over, '\0');
}

// The header and the name, padded: what stands before an entry's bytes when the
// archive so far ends at a multiple of four.
std::string entry_start(std::string_view path, const EntryHeader& header) {
  std::string out = "070701";
  append_hex(out, header.inode);
  append_hex(out, header.mode);
  append_hex(out, 0);  // uid
  append_hex(out, 0);  // gid
  append_hex(out, 1);  // links
  append_hex(out, 0);  // mtime
  append_hex(out, header.size);
  append_hex(out, 0);  // device of the file itself
  append_hex(out, 0);
  append_hex(out, header.major);
  append_hex(out, header.minor);
  append_hex(out, path.size() + 1);
  append_hex(out, 0);  // no checksum in this kind
  out += path;
  out += '\0';
  pad_to(out, 4);
  return out;
}

std::string archive_end() {
  return entry_start("TRAILER!!!", EntryHeader{});
}

Result<void> copy_bytes(int from, int to, const fs::path& source, std::uint64_t expected) {
  std::array<char, 256U << 10U> buffer{};
  std::uint64_t copied = 0;
  while (true) {
    const ssize_t got = ::read(from, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return errno_error(cat("read ", source.native()), errno);
    if (got == 0) break;
    copied += static_cast<std::uint64_t>(got);
    const std::string_view piece(buffer.data(), static_cast<std::size_t>(got));
    if (auto done = write_all(to, piece, "write the initramfs"); !done) return done;
  }
  if (copied == expected) return {};
  return Error{ErrorCode::conflict, cat(source.native(), " changed while it was read")};
}

Result<void> append_file(int to, const fs::path& file) {
  const Fd from(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!from.valid() || ::fstat(from.get(), &status) < 0) {
    return errno_error(cat("open ", file.native()), errno);
  }
  if (status.st_size % 4 != 0) {
    return Error{ErrorCode::internal, cat(file.native(), " is not a padded cpio archive")};
  }
  return copy_bytes(from.get(), to, file, static_cast<std::uint64_t>(status.st_size));
}

Result<void> append_agent(int to, const fs::path& agent) {
  const Fd from(::open(agent.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat status {};
  if (!from.valid() || ::fstat(from.get(), &status) < 0) {
    return errno_error(cat("open ", agent.native()), errno);
  }
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size > UINT32_MAX) {
    return Error{ErrorCode::invalid_argument, cat(agent.native(), " is too large for an archive")};
  }
  // Without a console the kernel starts init with no stdin, stdout and stderr.
  std::string start = entry_start("dev", {.inode = 1, .mode = S_IFDIR | 0755});
  start += entry_start("dev/console",
                       {.inode = 2, .mode = S_IFCHR | 0600, .size = 0, .major = 5, .minor = 1});
  start += entry_start("init", {.inode = 3, .mode = S_IFREG | 0755, .size = size});
  if (auto done = write_all(to, start, "write the initramfs"); !done) return done;
  if (auto done = copy_bytes(from.get(), to, agent, size); !done) return done;
  std::string end((4 - size % 4) % 4, '\0');
  end += archive_end();
  return write_all(to, end, "write the initramfs");
}

Result<void> write_parts(int to, std::span<const fs::path> archives, const fs::path& agent) {
  for (const fs::path& archive : archives) {
    if (auto done = append_file(to, archive); !done) return done;
  }
  return append_agent(to, agent);
}

}  // namespace

void InitramfsArchive::add_parents(std::string_view path) {
  for (std::size_t at = path.find('/'); at != std::string_view::npos; at = path.find('/', at + 1)) {
    add_dir(path.substr(0, at));
  }
}

void InitramfsArchive::add_dir(std::string_view path, mode_t mode) {
  if (dirs_.contains(path)) return;
  add_parents(path);
  dirs_.emplace(path);
  bytes_ += entry_start(path, {.inode = next_inode_++, .mode = S_IFDIR | mode});
}

void InitramfsArchive::add_file(std::string_view path, std::string_view bytes, mode_t mode) {
  add_parents(path);
  bytes_ +=
      entry_start(path, {.inode = next_inode_++, .mode = S_IFREG | mode, .size = bytes.size()});
  bytes_ += bytes;
  pad_to(bytes_, 4);
}

void InitramfsArchive::add_symlink(std::string_view path, std::string_view target) {
  add_parents(path);
  bytes_ +=
      entry_start(path, {.inode = next_inode_++, .mode = S_IFLNK | 0777, .size = target.size()});
  bytes_ += target;
  pad_to(bytes_, 4);
}

void InitramfsArchive::add_char_device(std::string_view path, mode_t mode, unsigned major,
                                       unsigned minor) {
  add_parents(path);
  bytes_ += entry_start(
      path,
      {.inode = next_inode_++, .mode = S_IFCHR | mode, .size = 0, .major = major, .minor = minor});
}

std::string InitramfsArchive::finish() {
  bytes_ += archive_end();
  pad_to(bytes_, archive_alignment);
  return std::move(bytes_);
}

Result<void> compose_initramfs(const fs::path& into, std::span<const fs::path> archives,
                               const fs::path& agent) {
  const fs::path temporary = cat(into.native(), ".new-", random_hex(6));
  const auto write = [&]() -> Result<void> {
    const Fd out(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0444));
    if (!out.valid()) return errno_error(cat("create ", temporary.native()), errno);
    if (auto done = write_parts(out.get(), archives, agent); !done) return done;
    if (::fsync(out.get()) < 0) return errno_error(cat("sync ", temporary.native()), errno);
    if (::rename(temporary.c_str(), into.c_str()) < 0) {
      return errno_error(cat("rename to ", into.native()), errno);
    }
    return sync_dir(into.parent_path());
  };
  auto written = write();
  if (!written) ::unlink(temporary.c_str());
  return written;
}

}  // namespace fuse
