#pragma once

#include <cstdint>

#include "base/host.h"
#include "base/result.h"
#include "orchestrator/api/streams.h"

namespace fuse::cmd {

struct Packed {
  std::uint64_t files = 0;
  std::uint64_t bytes = 0;
  int skipped = 0;  // devices, pipes and sockets
};

// Writes what is in a folder as an archive: names below ".", symbolic links as such.
// `with_root`: the folder itself is the first entry, for its mode.  `unavailable` when
// the sink answers false; an error when a file cannot be read or becomes shorter
// while it is.
Result<Packed> pack_tree(const fs::path& folder, bool with_root, const ByteSink& sink);

}  // namespace fuse::cmd
