#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/locked.h"
#include "base/log.h"

namespace fuse {

// Keeps a problem that lasts from filling a log: a warning or an error goes on to
// `log` when its words and fields were not said within `interval`; the next one
// that does tells how many did not.  Everything else goes on as it comes.  `log`
// and `clock` must outlive it.
class QuietLog final : public Log {
 public:
  QuietLog(Log& log, const Clock& clock,
           std::chrono::nanoseconds interval = std::chrono::minutes(1))
      : log_(log), clock_(clock), interval_(interval) {}
  void write(LogLevel level, std::string_view message,
             std::initializer_list<LogField> fields) override;

 private:
  struct Said {
    SteadyTime at{};
    std::uint64_t held_back = 0;  // since then
  };
  using Entries = std::map<std::string, Said>;
  void forget_old(Entries& entries, SteadyTime now) const;

  Log& log_;
  const Clock& clock_;
  std::chrono::nanoseconds interval_;
  Locked<Entries> said_{};
};

}  // namespace fuse
