#pragma once

#include <chrono>
#include <string_view>

#include "base/host.h"

namespace fuse {

// Opens the file and writes `text` with one write(2), in a process apart: some
// writes to sysfs never return, and whoever makes one cannot even be killed.
// Returns the errno of the attempt, 0 for success; unavailable after `limit`, when
// the process is left behind as a child of init.
Result<int> write_apart(const fs::path& file, std::string_view text,
                        std::chrono::milliseconds limit);

}  // namespace fuse
