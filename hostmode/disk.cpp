#include "hostmode/disk.h"

#include "base/command.h"
#include "base/text.h"

namespace fuse {

std::vector<std::string> overlay_argv(const std::string& qemu_img, const fs::path& base,
                                      const fs::path& overlay, std::uint64_t bytes) {
  std::vector<std::string> argv = {qemu_img, "create",      "-q", "-f",    "qcow2",
                                   "-b",     base.native(), "-F", "qcow2", overlay.native()};
  if (bytes != 0) argv.push_back(cat(bytes));
  return argv;
}

std::uint64_t overlay_bytes(std::int32_t storage_gb, std::uint64_t image_bytes) {
  const std::uint64_t wanted = static_cast<std::uint64_t>(storage_gb) << 30U;
  return wanted > image_bytes ? wanted : 0;
}

Result<void> create_overlay(Host& host, const std::vector<std::string>& argv) {
  const auto made = require_command(host, {.argv = argv});
  if (!made) return in_context("create the disk", made.error());
  return {};
}

}  // namespace fuse
