#include "cmd/tree_pack.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <memory>

#include "base/fd.h"
#include "base/text.h"
#include "cmd/output.h"
#include "cmd/tar.h"

namespace fuse::cmd {

namespace {

constexpr std::size_t piece = 64U << 10U;

class Packer {
 public:
  explicit Packer(const ByteSink& sink) : sink_(sink) {}

  Result<void> add_root(const fs::path& folder) {
    struct stat found {};
    if (::stat(folder.c_str(), &found) < 0) return cannot("look at", folder.native());
    return send_header(found, TarEntry::Type::folder, "./");
  }

  // What is in the folder, which the archive knows as `name`.
  Result<void> add_contents(const fs::path& folder, const std::string& name) {
    const std::unique_ptr<DIR, int (*)(DIR*)> list(::opendir(folder.c_str()), ::closedir);
    if (!list) return cannot("open", folder.native());
    for (;;) {
      errno = 0;
      const dirent* const found = ::readdir(list.get());
      if (found == nullptr) return errno == 0 ? Result<void>() : cannot("read", folder.native());
      const std::string_view own = found->d_name;
      if (own == "." || own == "..") continue;
      if (auto done = add(folder / own, cat(name, "/", own)); !done) return done;
    }
  }

  Result<void> end() { return send(tar_end()); }
  [[nodiscard]] const Packed& packed() const { return packed_; }

 private:
  static Error cannot(std::string_view what, std::string_view path) {
    return errno_error(cat(what, " ", printable(path)), errno);
  }

  Result<void> send(std::string_view bytes) {
    if (bytes.empty() || sink_(bytes)) return {};
    return Error{ErrorCode::unavailable, "nobody takes the archive"};
  }

  Result<void> send_header(const struct stat& found, TarEntry::Type type, const std::string& name,
                           std::string target = "") {
    const bool is_file = type == TarEntry::Type::file;
    return send(tar_header({.type = type,
                            .path = name,
                            .target = std::move(target),
                            .mode = found.st_mode & 07777U,
                            .size = is_file ? static_cast<std::uint64_t>(found.st_size) : 0,
                            .mtime = found.st_mtime}));
  }

  Result<void> add(const fs::path& path, const std::string& name) {
    struct stat found {};
    if (::lstat(path.c_str(), &found) < 0) return cannot("look at", path.native());
    if (S_ISDIR(found.st_mode)) {
      if (auto sent = send_header(found, TarEntry::Type::folder, cat(name, "/")); !sent)
        return sent;
      return add_contents(path, name);
    }
    if (S_ISLNK(found.st_mode)) {
      std::error_code failure;
      const fs::path target = fs::read_symlink(path, failure);
      if (failure) return errno_error(cat("read ", printable(path.native())), failure.value());
      return send_header(found, TarEntry::Type::symlink, name, target.native());
    }
    if (S_ISREG(found.st_mode)) return add_file(path, name);
    ++packed_.skipped;
    return {};
  }

  Result<void> add_file(const fs::path& path, const std::string& name) {
    const Fd file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    if (!file.valid()) return cannot("open", path.native());
    struct stat found {};
    if (::fstat(file.get(), &found) < 0) return cannot("look at", path.native());
    if (auto sent = send_header(found, TarEntry::Type::file, name); !sent) return sent;
    // What it grows by in the meantime belongs to nobody.
    const auto size = static_cast<std::uint64_t>(found.st_size);
    std::array<char, piece> buffer;  // NOLINT(*-member-init): written by read
    for (std::uint64_t left = size; left > 0;) {
      const ssize_t got = ::read(file.get(), buffer.data(), std::min<std::uint64_t>(left, piece));
      if (got < 0 && errno == EINTR) continue;
      if (got < 0) return cannot("read", path.native());
      if (got == 0) {
        return Error{ErrorCode::conflict,
                     cat(printable(path.native()), " became shorter while it was read")};
      }
      left -= static_cast<std::uint64_t>(got);
      if (auto sent = send({buffer.data(), static_cast<std::size_t>(got)}); !sent) return sent;
    }
    ++packed_.files;
    packed_.bytes += size;
    return send(tar_padding(size));
  }

  const ByteSink& sink_;
  Packed packed_{};
};

}  // namespace

Result<Packed> pack_tree(const fs::path& folder, bool with_root, const ByteSink& sink) {
  Packer packer(sink);
  if (with_root) {
    if (auto done = packer.add_root(folder); !done) return done.error();
  }
  if (auto done = packer.add_contents(folder, "."); !done) return done.error();
  if (auto done = packer.end(); !done) return done.error();
  return packer.packed();
}

}  // namespace fuse::cmd
