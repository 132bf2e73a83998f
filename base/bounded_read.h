#pragma once

#include <cstdint>
#include <iosfwd>
#include <string>
#include <string_view>

#include "base/host.h"

namespace fuse {

// The whole file, which may be a pipe or a device: payload_too_large as soon as
// there is more than `most` bytes of it.
Result<std::string> read_at_most(const fs::path& file, std::uint64_t most);
// The same of what is open already; `shown` is its name in the error.
Result<std::string> read_at_most(int fd, std::string_view shown, std::uint64_t most);
Result<std::string> read_at_most(std::istream& stream, std::string_view shown, std::uint64_t most);

}  // namespace fuse
