#pragma once

#include <filesystem>

#include "base/host.h"
#include "base/ids.h"

namespace fuse {

// A folder of a test's own, gone after it.
class Folder {
 public:
  Folder() : path_(fs::temp_directory_path() / ("fuse-test-" + random_hex(6))) {
    fs::create_directory(path_);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace fuse
