#pragma once

#include <cstdint>
#include <set>
#include <stop_token>
#include <string>
#include <vector>

#include "hostmode/image_steps.h"
#include "hostmode/image_store.h"

namespace fuse {

// What kind of image to bake:
//   micro: busybox in the initramfs, no disk; boots fastest
//   base: Debian with Python on a disk
enum class ImageKind { micro, base };

struct BakeOptions {
  ImageKind kind = ImageKind::base;
  std::uint64_t disk_bytes = 4ULL << 30U;  // base: the size a VM's disk starts from
  std::vector<std::string> packages{};     // base: more Debian packages
  bool with_containers = false;            // base: what services need
  std::set<fs::path> in_use{};             // files of images that VMs use: not collected
  std::stop_token stop{};
  BakeListener listener{};  // told of each step
};

// Makes the image `name` in the store, replacing what has that name: images and
// VMs that exist already keep the files that they use.  Works as root and, given
// a range of user ids, as a user.  conflict while the same name is being baked;
// unavailable, with the command and its last lines, when a step fails, and with
// the packages to install when programs are missing.  Leaves nothing behind but
// the image.
Result<ImageManifest> bake_image(const ImageStore& store, Host& host, Clock& clock,
                                 const std::string& name, const BakeOptions& options);

}  // namespace fuse
