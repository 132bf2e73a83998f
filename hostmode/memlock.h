#pragma once

#include <cstdint>

#include "base/result.h"

namespace fuse {

// What a process may lock into memory, in bytes.
struct LockLimit {
  static constexpr std::uint64_t none = ~std::uint64_t{0};
  std::uint64_t soft = 0;
  std::uint64_t hard = 0;

  bool operator==(const LockLimit&) const = default;
};

// What QEMU locks for a VM whose devices read and write its memory by themselves: all of
// it, and room for what is mapped beside it.
[[nodiscard]] std::uint64_t bytes_to_lock(std::int32_t memory_mb);

// The limit to set so that `bytes` may be locked: none where that is allowed, else the
// hard one.  internal, saying what is missing, when not even that is enough.
Result<LockLimit> raised_lock_limit(const LockLimit& now, std::uint64_t bytes, bool privileged);

// Raises the limit of this process, which a QEMU that it starts from then on has too.
Result<void> allow_locking(std::uint64_t bytes);

}  // namespace fuse
