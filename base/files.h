#pragma once

#include <string_view>

#include "base/host.h"

namespace fuse {

// write(2) until all of `bytes` is out; `what` begins the error's message.
Result<void> write_all(int fd, std::string_view bytes, std::string_view what);

// Whether `path` names the file that `fd` has open; not when it was removed, or
// another one put in its place.
bool is_file_at(int fd, const fs::path& path);

// fsync(2) of a folder, so that a rename or a new name in it is on disk.
Result<void> sync_dir(const fs::path& dir);

// Whether a folder of `host` has this entry, whatever it is.
bool has_entry(Host& host, const fs::path& path);

}  // namespace fuse
