#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fuse {

// A file of the image store: its content's SHA-256 in hex and its length.
struct BlobRef {
  std::string sha256{};
  std::uint64_t size = 0;
  friend bool operator==(const BlobRef&, const BlobRef&) = default;
};

// What NAME.json says about an image.  `disk` to `root` are files of the store;
// one that the image does without is absent.
struct ImageManifest {
  static constexpr int newest_schema = 1;

  int schema = newest_schema;
  std::string name{};
  std::string boot{};                      // "kernel": started with -kernel and our initramfs
  std::optional<BlobRef> disk{};           // qcow2 with the root file system
  std::uint64_t disk_bytes = 0;            // its virtual size
  std::optional<BlobRef> kernel{};         // as its package ships it
  std::optional<BlobRef> direct_kernel{};  // the same unpacked, where QEMU can enter it at once
  std::optional<BlobRef> modules{};        // cpio archive: kernel modules and their order
  std::optional<BlobRef> root{};           // cpio archive: the root of an image without a disk
  std::string init{};                      // the disk's own init; empty: our agent stays PID 1
  std::string os{};                        // "debian 12"
  std::string arch{};                      // "amd64"
  std::string kernel_version{};            // as uname -r says it in the guest
  std::string driver_branch{};             // of NVIDIA's driver; empty: none inside
  std::string agent{};     // "host": the agent is that of the program that starts it
  std::string built_by{};  // "fuse 0.1.0"
  std::string created{};   // RFC 3339

  // All its files.
  [[nodiscard]] std::vector<BlobRef> files() const;
  // Bytes of all its files together.
  [[nodiscard]] std::uint64_t size() const;
  // Of what it consists of: two images with the same files and the same way to
  // start have the same digest, whatever their names.
  [[nodiscard]] std::string sha256() const;
};

// The text of NAME.json.
std::string to_text(const ImageManifest& manifest);

// Refuses what is not a manifest, a newer schema (naming both numbers) and a
// digest that does not look like one, since it becomes a file's name.
Result<ImageManifest> parse_image_manifest(std::string_view text);

}  // namespace fuse
