#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace fuse {

// A size as a Fusefile writes it, in MiB: a decimal number, optional blanks,
// M, MB, MiB, G, GB, GiB, T, TB or TiB in any case; every unit is binary.  The
// message of an error is the wire's text without the field, as in
// `invalid size "3X" (expected a number and a unit, e.g. "512MB", "2GB",
// "1.5GiB")`.
Result<std::int32_t> parse_size_mib(std::string_view text);

// A duration in Go's notation ("1h30m", "1.5h", ".5s", "-2ms", "0"), bounded by
// 64-bit nanoseconds.  Messages are Go's, as in `time: missing unit in duration
// "90"`.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

// Go's rendering: "1m30s", "1.5s", "300ms", "0s".
std::string to_string(std::chrono::nanoseconds duration);

// For people: "2.9 s", "1 m 20 s", "3 h 5 m".
std::string human_duration(std::chrono::nanoseconds duration);
// For people, binary: "512 MiB", "1.4 GiB".
std::string human_bytes(std::uint64_t bytes);

}  // namespace fuse
