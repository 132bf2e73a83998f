#pragma once

#include "base/host.h"

namespace fuse {

// The real machine.  With a root, "/sys/x" is read as root/sys/x (spawned
// programs and their arguments are left as they are): fixture trees in tests.
class PosixHost final : public Host {
 public:
  explicit PosixHost(fs::path root = {}) : root_(std::move(root)) {}

  Result<std::string> read_file(const fs::path& file) override;
  Result<void> write_file(const fs::path& file, std::string_view text) override;
  Result<void> replace_file(const fs::path& file, std::string_view text, mode_t mode) override;
  Result<fs::path> read_link(const fs::path& link) override;
  Result<std::vector<std::string>> list_dir(const fs::path& dir) override;
  Result<void> make_dirs(const fs::path& dir, mode_t mode) override;
  Result<void> remove_all(const fs::path& path) override;
  Result<std::unique_ptr<Process>> spawn(const SpawnSpec& spec) override;

 private:
  [[nodiscard]] fs::path at(const fs::path& path) const;
  fs::path root_;
};

}  // namespace fuse
