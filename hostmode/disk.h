#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/host.h"
#include "base/result.h"

namespace fuse {

// The command that makes a VM's own disk: a qcow2 that holds only what differs
// from `base`.  `bytes` is its size, 0 for that of the base.
std::vector<std::string> overlay_argv(const std::string& qemu_img, const fs::path& base,
                                      const fs::path& overlay, std::uint64_t bytes);

// How large the disk of a VM is that asked for `storage_gb` of an image of
// `image_bytes`: never smaller than the image, 0 when it is the image's size.
std::uint64_t overlay_bytes(std::int32_t storage_gb, std::uint64_t image_bytes);

// Makes it.  The error quotes qemu-img.
Result<void> create_overlay(Host& host, const std::vector<std::string>& argv);

}  // namespace fuse
