#pragma once

#include <cstdlib>
#include <string>

#include "base/host.h"

namespace fuse {

// A folder of a test's own, removed with all that is in it.
class TempDir {
 public:
  TempDir() {
    std::string name = (fs::temp_directory_path() / "fuse-guest-XXXXXX").native();
    path_ = ::mkdtemp(name.data());
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
  ~TempDir() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_{};
};

}  // namespace fuse
