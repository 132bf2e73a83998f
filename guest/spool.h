#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/fd.h"
#include "base/host.h"
#include "base/result.h"

namespace fuse {

struct SpoolLimits {
  std::uint64_t most_unacknowledged = 1U << 30U;
  std::uint64_t segment_size = 1U << 20U;
};

// A job's output on disk until a host has it: a byte sequence in segment files,
// from which the acknowledged beginning goes away.  Nothing of the rest is ever
// dropped; whoever fills it must stop while there is no room.  What a host has
// taken from memory, while the disk was full, is not written any more.
class Spool {
 public:
  // An empty one; what lies in the folder is removed.
  static Result<std::unique_ptr<Spool>> create(const fs::path& dir, const SpoolLimits& limits);
  // What an earlier agent left in the folder.
  static Result<std::unique_ptr<Spool>> open(const fs::path& dir, const SpoolLimits& limits);
  Spool(fs::path dir, const SpoolLimits& limits) : dir_(std::move(dir)), limits_(limits) {}

  // False while more than the limit is not acknowledged, or the disk is full.
  [[nodiscard]] bool has_room() const;
  // Always takes all: what the disk does not take is kept in memory, and there is
  // no room until flush() has written it.
  void append(std::string_view bytes);
  void flush();
  // Whether bytes wait in memory for the disk.
  [[nodiscard]] bool is_behind() const { return !tail_.empty(); }

  [[nodiscard]] std::uint64_t begin() const {
    return std::max(first_segment_ * limits_.segment_size, skipped_);
  }
  [[nodiscard]] std::uint64_t end() const { return on_disk_ + tail_.size(); }
  // Up to `most` bytes from `offset`, which lies in [begin(), end()]; fewer at a
  // segment's end.
  Result<std::string> read(std::uint64_t offset, std::size_t most);
  // Everything before `offset` is safe elsewhere.  Never goes back.
  void acknowledge(std::uint64_t offset);

 private:
  [[nodiscard]] fs::path segment_path(std::uint64_t index) const;
  // Writes what it can and takes it off.
  void write_out(std::string_view& bytes);
  bool open_writer();
  void skip_to(std::uint64_t offset);

  fs::path dir_;
  SpoolLimits limits_;
  std::uint64_t first_segment_ = 0;
  std::uint64_t on_disk_ = 0;  // the offset behind the last byte on disk
  std::uint64_t skipped_ = 0;  // before it something was never written
  std::uint64_t acknowledged_ = 0;
  std::string tail_{};
  Fd writer_{};
  Fd reader_{};
  std::optional<std::uint64_t> reader_segment_{};
};

// What a spool in `dir` may take: 1 GiB, or a quarter of what is free there, but
// 1 MiB at least.
std::uint64_t spool_limit(const fs::path& dir);

}  // namespace fuse
