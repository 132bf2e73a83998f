#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "fusefile/diagnostics.h"
#include "fusefile/fusefile.h"

namespace fuse {

enum class SourceKind { regular, directory, symlink, other };

struct SourceInfo {
  SourceKind kind = SourceKind::regular;
  std::uint64_t size = 0;
  bool executable = false;  // by its owner
};

// The user's files, as far as `files[].source` and `copy[].from` reach.  All
// paths are absolute.
class SourceTree {
 public:
  virtual ~SourceTree() = default;
  // Does not follow a symlink at the end of the path.
  virtual Result<SourceInfo> inspect(const fs::path& path) = 0;
  // Every symlink on the way resolved; not_found when nothing is there.
  virtual Result<fs::path> canonical(const fs::path& path) = 0;
  // Names in a folder, sorted, without "." and "..".
  virtual Result<std::vector<std::string>> list(const fs::path& dir) = 0;
  // A regular file, not through a symlink at the end; more than `most` bytes
  // are payload_too_large.
  virtual Result<std::string> read(const fs::path& file, std::uint64_t most) = 0;
};

class PosixSourceTree final : public SourceTree {
 public:
  Result<SourceInfo> inspect(const fs::path& path) override;
  Result<fs::path> canonical(const fs::path& path) override;
  Result<std::vector<std::string>> list(const fs::path& dir) override;
  Result<std::string> read(const fs::path& file, std::uint64_t most) override;
};

struct SourceOptions {
  // Sources outside the Fusefile's repository (the nearest folder with .git,
  // else the Fusefile's own), also absolute ones.
  bool allow_outside = false;
};

// One file that `copy` carries into the guest.
struct CopiedFile {
  std::string source{};  // as reached from the Fusefile's folder
  std::string bytes{};
  bool executable = false;
};

// What the files named in a Fusefile hold.
struct LoadedSources {
  std::map<std::size_t, std::string> file_bodies{};  // of files[i].source, by i
  std::map<std::string, CopiedFile> copied{};        // by absolute guest path
};

// Reads the bodies of `files[].source` and expands `copy`: folders are walked,
// `.fuseignore` beside the Fusefile applies.  `fusefile` is the Fusefile's
// absolute path.  Problems go to `diagnostics`, all of them; what has problems
// is left out.  A draft is looked through like a file: what `diagnostics` blames
// already is not complained about again.
LoadedSources load_sources(const Fusefile& file, const fs::path& fusefile, SourceTree& tree,
                           const SourceOptions& options, Diagnostics& diagnostics);

}  // namespace fuse
