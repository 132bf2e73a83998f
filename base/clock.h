#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

namespace fuse {

using WallTime = std::chrono::sys_time<std::chrono::nanoseconds>;
using SteadyTime = std::chrono::steady_clock::time_point;

// Where time comes from.  Tests pass a FakeClock and move it.
class Clock {
 public:
  virtual ~Clock() = default;
  [[nodiscard]] virtual WallTime wall() const = 0;
  [[nodiscard]] virtual SteadyTime steady() const = 0;
  virtual void sleep(std::chrono::nanoseconds time) = 0;
};

class SystemClock final : public Clock {
 public:
  [[nodiscard]] WallTime wall() const override;
  [[nodiscard]] SteadyTime steady() const override;
  void sleep(std::chrono::nanoseconds time) override;
};

// RFC 3339 in UTC: "2026-11-30T15:04:05.123456789Z", trailing zeros of the
// fraction left out.  Parsing takes Z or an offset, up to nine digits and the
// years 1678 to 2261.
std::string to_rfc3339(WallTime time);
std::optional<WallTime> parse_rfc3339(std::string_view text);

}  // namespace fuse
