#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "hostmode/image_manifest.h"

namespace fuse {

// A guest image, ready to be started.  The files it names never change, and the
// store keeps them for at least an hour after resolve(); later only those that
// the caller of collect() names.
struct Image {
  std::string name{};
  // Empty for a foreign image: it boots by firmware and a boot loader of its
  // own.
  fs::path kernel{};
  // Our initramfs with this very program as /init; empty when `kernel` is.
  fs::path initrd{};
  // A qcow2 to put an overlay on.  Absent: everything is in the initramfs.
  std::optional<fs::path> disk{};
  std::uint64_t disk_bytes = 0;  // virtual size of the disk, 0 without one
  // The initramfs mounts the disk's file system as the root.
  bool has_root = false;
  // The disk's own init, run once the agent is up; empty: the agent stays
  // PID 1.
  std::string init{};
  bool foreign = false;  // a bare NAME.qcow2 that nobody described
  std::string os{};
  std::string arch{};
  std::string kernel_version{};
  std::string driver_branch{};
};

// One line of `fuse image list`.
struct ListedImage {
  ImageManifest manifest{};  // of a foreign image only name, disk_bytes and boot
                             // "firmware"
  bool foreign = false;
  std::uint64_t size = 0;  // bytes of its files
  std::string problem{};   // why it cannot be started; empty: nothing is known to
                           // be wrong
};

// What collect() removed, or would.
struct CollectedImages {
  struct File {
    fs::path path{};  // also the folder of a bake that was killed
    std::uint64_t bytes = 0;
  };
  std::vector<File> files{};
  // What nobody needs, either, but was used within the last hour.
  std::vector<File> recent{};
  // Images whose manifest cannot be read, for which every blob was kept.
  std::vector<std::string> unreadable{};

  [[nodiscard]] std::uint64_t bytes() const;
};

enum class Collecting { remove, look_only };

struct ImageStoreConfig {
  fs::path dir{};
  // What becomes /init in the guest, and what tells one build of it from
  // another.
  fs::path agent = "/proc/self/exe";
  std::string agent_build{};  // base's build_id()
  // Started when no image is named: a path to a qcow2 (BASE_ROOTFS).  Empty:
  // the image called "base".
  fs::path base_rootfs{};
};

// Guest images in a folder:
//
//   NAME.json        manifest; NAME may have sub-folders
//   NAME.qcow2       foreign image, taken as it is
//   blobs/SHA256     files that manifests name, never written in place
//   initrd/KEY.cpio  initramfs put together for one build of this program
//   .lock, .bake-*   locks, and the folders of bakes in progress
//
// Safe from several threads and processes at once.
class ImageStore {
 public:
  explicit ImageStore(ImageStoreConfig config) : config_(std::move(config)) {}

  [[nodiscard]] const fs::path& dir() const { return config_.dir; }

  // The image to start for `name`, "" being the default one.  invalid_argument
  // for a name that is none or leads out of the folder, not_found when there is
  // no such image; messages are the wire's.  Puts the initramfs together when
  // this build has not done so yet.
  Result<Image> resolve(const std::string& name) const;

  // All of them by name, the broken ones with their problem.  No folder: none.
  [[nodiscard]] std::vector<ListedImage> list() const;

  // Reads every file of an image again and compares size and digest with the
  // manifest; what is wrong, a line a file.  Of a foreign image only its header
  // can be told.
  Result<std::vector<std::string>> verify(const std::string& name) const;

  // The manifest of an image, absent when it is foreign.
  Result<std::optional<ImageManifest>> manifest(const std::string& name) const;

  // Moves a finished file into the store (same file system; synced first) and
  // says what it is called there.
  Result<BlobRef> adopt_blob(const fs::path& file) const;
  [[nodiscard]] fs::path blob_path(const BlobRef& blob) const;

  // Makes `manifest.name` mean this manifest from now on.  Its blobs must be
  // there.
  Result<void> publish(const ImageManifest& manifest) const;

  // Removes blobs and initramfs that no manifest needs, that are not among
  // `in_use` (paths as in Image) and that were not resolved in the last hour;
  // also what a killed bake left behind.
  Result<CollectedImages> collect(const std::set<fs::path>& in_use,
                                  Collecting how = Collecting::remove) const;

 private:
  [[nodiscard]] ListedImage describe(const std::string& name, bool foreign) const;
  [[nodiscard]] Result<Image> start_from(const ImageManifest& manifest) const;
  [[nodiscard]] Result<fs::path> compose_initrd(const ImageManifest& manifest) const;

  ImageStoreConfig config_;
};

// Why `name` cannot be given to a new image, or nothing when it can: parts of
// letters, digits, dots, dashes and underscores that begin with a letter or a
// digit, joined by slashes.
std::optional<std::string> image_name_objection(std::string_view name);

}  // namespace fuse
