#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "base/fd.h"
#include "base/host.h"

namespace fuse {

// An flock(2) on a file that is made when missing; closing gives it back.
enum class LockMode { shared, exclusive };
Result<Fd> lock_file(const fs::path& file, LockMode mode);
// The same, but nothing when another holds it.
Result<std::optional<Fd>> try_lock_file(const fs::path& file);

// The size that a guest sees of a qcow2 file, from its header.
Result<std::uint64_t> qcow2_virtual_size(const fs::path& file);

// Says that `file` was used just now.  Silent where it may not be said, as on a
// read-only file system, where nothing is collected either.
void mark_used(const fs::path& file);
bool used_within_the_hour(const fs::path& file);

// Removes a folder and all below it, but nothing of another file system that is
// mounted in it: what a killed bake left may hold such mounts.
Result<void> remove_tree_of_one_file_system(const fs::path& dir);

}  // namespace fuse
