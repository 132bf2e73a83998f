#pragma once

#include <string_view>

#include "base/fd.h"
#include "base/host.h"

namespace fuse {

// Connects to the unix socket `name` in `dir`.  The path that the kernel sees is
// short however long `dir` is (/proc/self/fd/N/NAME).  not_found when there is no
// such socket, unreachable when nobody listens on it.
Result<Fd> connect_unix(const fs::path& dir, std::string_view name);

}  // namespace fuse
