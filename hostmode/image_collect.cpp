#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "base/fd.h"
#include "base/text.h"
#include "hostmode/image_files.h"
#include "hostmode/image_store.h"

namespace fuse {
namespace {

// Names of files; they are digests, so the folder does not matter.
using FileNames = std::set<std::string>;

FileNames names_of(const std::set<fs::path>& paths) {
  FileNames names;
  for (const fs::path& path : paths) names.insert(path.filename().native());
  return names;
}

// Blobs that some manifest names.
FileNames needed_blobs(const std::vector<ListedImage>& images) {
  FileNames needed;
  for (const ListedImage& image : images) {
    for (const BlobRef& file : image.manifest.files()) needed.insert(file.sha256);
  }
  return needed;
}

// A manifest that cannot be read may name any blob, so then all stay.
bool all_readable(const ImageStore& store, const std::vector<ListedImage>& images) {
  for (const ListedImage& image : images) {
    if (!image.foreign && !store.manifest(image.manifest.name)) return false;
  }
  return true;
}

Result<void> remove_unneeded(const fs::path& dir, const FileNames& needed,
                             CollectedImages& collected) {
  std::error_code failure;
  for (fs::directory_iterator it(dir, failure), end; !failure && it != end; it.increment(failure)) {
    const fs::path& file = it->path();
    if (needed.contains(file.filename().native()) || used_within_the_hour(file)) continue;
    std::error_code unknown;
    const std::uintmax_t size = fs::file_size(file, unknown);
    if (::unlink(file.c_str()) < 0) {
      if (errno == ENOENT) continue;
      return errno_error(cat("remove ", file.native()), errno);
    }
    collected.files += 1;
    if (!unknown) collected.bytes += size;
  }
  return {};
}

// A bake holds the lock in its folder for as long as it lives.
Result<void> remove_dead_bakes(const fs::path& dir, CollectedImages& collected) {
  std::error_code failure;
  for (fs::directory_iterator it(dir, failure), end; !failure && it != end; it.increment(failure)) {
    if (!it->path().filename().native().starts_with(".bake-")) continue;
    std::error_code gone;
    if (!fs::is_directory(it->symlink_status(gone))) continue;
    const auto lock = try_lock_file(it->path() / "lock");
    if (!lock) return lock.error();
    if (!lock->has_value()) continue;
    if (auto done = remove_tree_of_one_file_system(it->path()); !done) return done;
    collected.files += 1;
  }
  return {};
}

}  // namespace

Result<CollectedImages> ImageStore::collect(const std::set<fs::path>& in_use) const {
  CollectedImages collected;
  std::error_code failure;
  if (!fs::is_directory(config_.dir, failure)) return collected;
  const auto lock = lock_file(config_.dir / ".lock", LockMode::exclusive);
  if (!lock) return lock.error();
  if (auto done = remove_dead_bakes(config_.dir, collected); !done) return done.error();
  const std::vector<ListedImage> images = list();
  if (all_readable(*this, images)) {
    FileNames needed = needed_blobs(images);
    needed.merge(names_of(in_use));
    if (auto done = remove_unneeded(config_.dir / "blobs", needed, collected); !done) {
      return done.error();
    }
  }
  // An initramfs can be put together again at any time.
  if (auto done = remove_unneeded(config_.dir / "initrd", names_of(in_use), collected); !done) {
    return done.error();
  }
  return collected;
}

}  // namespace fuse
