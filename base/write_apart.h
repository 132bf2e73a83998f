#pragma once

#include <chrono>
#include <functional>
#include <string_view>

#include "base/host.h"

namespace fuse {

// A write to a file of the kernel that is given up after `limit`: unavailable then.
using WriteWithin = std::function<Result<void>(const fs::path& file, std::string_view text,
                                               std::chrono::milliseconds limit)>;

// Writes with one write(2), in a process apart: some writes to sysfs never return, as
// to a driver's `unbind` while its device is in use, and whoever makes one cannot
// even be killed.  What is given up is left behind as a child of init.
Result<void> write_apart(const fs::path& file, std::string_view text,
                         std::chrono::milliseconds limit);

}  // namespace fuse
