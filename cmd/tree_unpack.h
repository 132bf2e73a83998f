#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/host.h"
#include "cmd/tar.h"

namespace fuse::cmd {

// Unpacks an archive that a guest made into a folder of ours.  Guests are not
// trusted: nothing is written outside of the folder, also not through links, and no
// file comes with set-uid bits.
class TreeUnpacker final : public TarSink {
 public:
  // `folder` is open; `sets_its_mode`: it was made for this, so that the archive's
  // own root says what it may.
  TreeUnpacker(Fd folder, bool sets_its_mode)
      : folder_(std::move(folder)), sets_its_mode_(sets_its_mode) {}

  Result<void> entry(const TarEntry& entry) override;
  Result<void> data(std::string_view bytes) override;
  Result<void> end() override;
  // Once everything has come: the modes that would have been in the way.
  Result<void> finish();

  // Devices, pipes and the like, which are left out.
  [[nodiscard]] int skipped() const { return skipped_; }
  [[nodiscard]] std::uint64_t files() const { return files_; }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  struct Place {
    int folder = -1;
    std::string name{};
  };
  Result<Place> place_of(const std::vector<std::string>& names);
  Result<void> add_folder(const Place& place, std::uint32_t mode);
  Result<void> add_link(const Place& place, const TarEntry& entry);
  Result<void> open_file(const Place& place);

  Fd folder_;
  bool sets_its_mode_;
  Fd parent_{};  // the last one in which something was put
  std::vector<std::string> parent_names_{};
  Fd file_{};
  TarEntry entry_{};
  // Folders that their owner may not write to.
  std::vector<std::pair<std::vector<std::string>, std::uint32_t>> late_modes_{};
  int skipped_ = 0;
  std::uint64_t files_ = 0;
  std::uint64_t bytes_ = 0;
};

}  // namespace fuse::cmd
