#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusefile/report.h"
#include "fusefile/sources.h"

namespace fuse {

// What a Fusefile may read: its repository, or everything when outside is
// allowed.  Every failure is reported against the field at `path` and yields
// nothing; `shown` is how the user knows the file.
class SourceReach {
 public:
  SourceReach(const fs::path& fusefile, SourceTree& tree, const SourceOptions& options,
              Report& report);

  // The file that `source` names, with every symlink resolved.
  std::optional<fs::path> resolve(const std::string& source, std::string_view path);
  // The same, but a symlink at the end stays one.
  std::optional<fs::path> resolve_unfollowed(const std::string& source, std::string_view path);
  std::optional<SourceInfo> inspect(const fs::path& file, std::string_view shown,
                                    std::string_view path);
  std::vector<std::string> list(const fs::path& dir, std::string_view shown, std::string_view path);
  std::optional<std::string> read(const fs::path& file, std::uint64_t most, std::string_view shown,
                                  std::string_view path);
  // A file in the Fusefile's folder, if it is there.
  std::optional<std::string> read_beside(std::string_view name, std::uint64_t most);

 private:
  void report_failure(const Error& error, std::string_view shown, std::string_view path);
  bool admit(const fs::path& resolved, std::string_view shown, std::string_view path);
  bool admit_as_written(const std::string& source, std::string_view path);

  SourceTree& tree_;
  SourceOptions options_;
  Report& report_;
  fs::path dir_{};  // the Fusefile's folder
  fs::path repository_{};
};

}  // namespace fuse
