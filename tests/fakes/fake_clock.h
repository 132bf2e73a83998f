#pragma once

#include <atomic>
#include <chrono>

#include "base/clock.h"

namespace fuse {

// Time that stands still until it is moved.  Safe from several threads.
struct FakeClock final : Clock {
  static constexpr std::chrono::nanoseconds start = std::chrono::hours(24 * 365 * 55);
  std::atomic<std::int64_t> passed{0};  // nanoseconds

  [[nodiscard]] WallTime wall() const override { return WallTime(start + since()); }
  [[nodiscard]] SteadyTime steady() const override { return SteadyTime(since()); }
  void sleep(std::chrono::nanoseconds time) override { move(time); }

  void move(std::chrono::nanoseconds time) { passed += time.count(); }
  [[nodiscard]] std::chrono::nanoseconds since() const {
    return std::chrono::nanoseconds(passed.load());
  }
};

}  // namespace fuse
