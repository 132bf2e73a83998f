#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/clock.h"

namespace fuse {

// `count` bytes from the kernel's random number generator (getrandom(2)).
std::string random_bytes(std::size_t count);
// 2 * `count` lower-case hex digits.
std::string random_hex(std::size_t count);

// A ULID: 26 characters of Crockford base32, the first ten a millisecond time,
// so that later ones sort later; unique by 80 random bits.
std::string new_ulid(WallTime now);
// Whether `text` is a ULID in its one spelling.
bool is_ulid(std::string_view text);
// The 128 bits of a ULID in the form of a UUID, as QEMU's -uuid wants it.
std::string ulid_to_uuid(const std::string& ulid);

// Makes identifiers; tests pass a counter.
using IdSource = std::function<std::string()>;

}  // namespace fuse
