#pragma once

#include <sys/types.h>

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include "base/host.h"

namespace fuse {

// Puts an initramfs together in memory: a cpio archive of the kind "newc", owned
// by root, with all times zero, so that equal entries make equal bytes.  Paths
// are relative ("bin/sh"); folders above an entry are added by themselves (0755).
class InitramfsArchive {
 public:
  void add_dir(std::string_view path, mode_t mode = 0755);
  void add_file(std::string_view path, std::string_view bytes, mode_t mode = 0644);
  void add_symlink(std::string_view path, std::string_view target);
  void add_char_device(std::string_view path, mode_t mode, unsigned major, unsigned minor);

  // The archive, padded so that another may follow it.  The object is spent.
  [[nodiscard]] std::string finish();

 private:
  void add_parents(std::string_view path);

  std::string bytes_{};
  std::set<std::string, std::less<>> dirs_{};
  std::uint32_t next_inode_ = 1;
};

// Writes `into`: the archives one after another, then one more with `agent` as
// /init and the console that the kernel opens for it, so that no archive can
// bring an /init of its own.  The file appears whole and synced, or not at all.
Result<void> compose_initramfs(const fs::path& into, std::span<const fs::path> archives,
                               const fs::path& agent);

}  // namespace fuse
