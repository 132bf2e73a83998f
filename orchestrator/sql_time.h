#pragma once

#include <chrono>
#include <cstdint>

#include "base/clock.h"

namespace fuse {

// How the database keeps a time: nanoseconds since 1970.
inline std::int64_t to_sql_time(WallTime time) {
  return time.time_since_epoch().count();
}
inline WallTime from_sql_time(std::int64_t value) {
  return WallTime(std::chrono::nanoseconds(value));
}

}  // namespace fuse
