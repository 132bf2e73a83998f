#pragma once

#include <fcntl.h>
#include <sys/stat.h>

#include <chrono>
#include <ctime>
#include <string>
#include <string_view>
#include <utility>

#include "base/ids.h"
#include "base/posix_host.h"
#include "base/text.h"
#include "hostmode/image_store.h"
#include "tests/catch.h"

namespace fuse {

// A folder of its own that is gone with the object.
class ScratchDir {
 public:
  ScratchDir() : path_(fs::temp_directory_path() / cat("fuse-test-", random_hex(8))) {
    fs::create_directories(path_);
  }
  ScratchDir(const ScratchDir&) = delete;
  ScratchDir& operator=(const ScratchDir&) = delete;
  ~ScratchDir() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

  fs::path write(const fs::path& relative, std::string_view text) const {
    const fs::path file = path_ / relative;
    fs::create_directories(file.parent_path());
    REQUIRE(PosixHost().replace_file(file, text, 0644));
    return file;
  }

 private:
  fs::path path_;
};

inline void make_old(const fs::path& file) {
  timespec times[2]{};
  times[0].tv_sec = times[1].tv_sec = std::time(nullptr) - 2 * 3600;
  REQUIRE(::utimensat(AT_FDCWD, file.c_str(), times, 0) == 0);
}

// The first bytes of a qcow2 file for a disk of `size` bytes.
inline std::string qcow2_header(std::uint64_t size) {
  std::string header("QFI\xfb\0\0\0\3", 8);
  header.append(16, '\0');
  for (int shift = 56; shift >= 0; shift -= 8) {
    header += static_cast<char>(static_cast<unsigned char>(size >> static_cast<unsigned>(shift)));
  }
  return header;
}

// A store with an agent, and images in it that consist of random bytes.
class StoreFixture {
 public:
  StoreFixture() : agent(scratch.write("agent", random_bytes(1001))), store(config("build-1")) {
    fs::create_directories(store.dir());
  }

  [[nodiscard]] ImageStoreConfig config(std::string build) const {
    return {.dir = scratch.path() / "images", .agent = agent, .agent_build = std::move(build)};
  }

  [[nodiscard]] BlobRef blob(std::size_t size) const {
    auto adopted = store.adopt_blob(scratch.write("images/.incoming", random_bytes(size)));
    REQUIRE(adopted);
    return *adopted;
  }

  // A manifest whose files are in the store but which is not published.
  [[nodiscard]] ImageManifest manifest(const std::string& name) const {
    ImageManifest image;
    image.name = name;
    image.boot = "kernel";
    image.arch = "amd64";
    image.agent = "host";
    image.kernel = blob(3000);
    image.modules = blob(1024);
    image.root = blob(512);
    image.kernel_version = "6.1.0-test";
    return image;
  }

  ImageManifest publish(const std::string& name) const {
    ImageManifest image = manifest(name);
    REQUIRE(store.publish(image));
    return image;
  }

  ScratchDir scratch{};
  fs::path agent;
  ImageStore store;
};

}  // namespace fuse
