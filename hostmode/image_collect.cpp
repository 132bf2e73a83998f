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
std::vector<std::string> unreadable(const ImageStore& store,
                                    const std::vector<ListedImage>& images) {
  std::vector<std::string> names;
  for (const ListedImage& image : images) {
    const std::string& name = image.manifest.name;
    if (!image.foreign && !store.manifest(name)) names.push_back(name);
  }
  return names;
}

std::uint64_t size_or_0(const fs::path& file) {
  std::error_code unknown;
  const std::uintmax_t size = fs::file_size(file, unknown);
  return unknown ? 0 : size;
}

std::uint64_t size_below(const fs::path& dir) {
  std::uint64_t size = 0;
  std::error_code failure;
  for (fs::recursive_directory_iterator it(dir, failure), end; !failure && it != end;
       it.increment(failure)) {
    std::error_code gone;
    if (fs::is_regular_file(it->symlink_status(gone))) size += size_or_0(it->path());
  }
  return size;
}

Result<void> collect_unneeded(const fs::path& dir, const FileNames& needed, Collecting how,
                              CollectedImages& collected) {
  std::error_code failure;
  for (fs::directory_iterator it(dir, failure), end; !failure && it != end; it.increment(failure)) {
    const fs::path& file = it->path();
    if (needed.contains(file.filename().native())) continue;
    CollectedImages::File found{.path = file, .bytes = size_or_0(file)};
    if (used_within_the_hour(file)) {
      collected.recent.push_back(std::move(found));
      continue;
    }
    if (how == Collecting::remove && ::unlink(file.c_str()) < 0) {
      if (errno == ENOENT) continue;
      return errno_error(cat("remove ", file.native()), errno);
    }
    collected.files.push_back(std::move(found));
  }
  return {};
}

// A bake holds the lock in its folder for as long as it lives.
Result<void> collect_dead_bakes(const fs::path& dir, Collecting how, CollectedImages& collected) {
  std::error_code failure;
  for (fs::directory_iterator it(dir, failure), end; !failure && it != end; it.increment(failure)) {
    if (!it->path().filename().native().starts_with(".bake-")) continue;
    std::error_code gone;
    if (!fs::is_directory(it->symlink_status(gone))) continue;
    const auto lock = try_lock_file(it->path() / "lock");
    if (!lock) return lock.error();
    if (!lock->has_value()) continue;
    CollectedImages::File found{.path = it->path(), .bytes = size_below(it->path())};
    if (how == Collecting::remove) {
      if (auto done = remove_tree_of_one_file_system(it->path()); !done) return done;
    }
    collected.files.push_back(std::move(found));
  }
  return {};
}

}  // namespace

std::uint64_t CollectedImages::bytes() const {
  std::uint64_t sum = 0;
  for (const File& file : files) sum += file.bytes;
  return sum;
}

Result<CollectedImages> ImageStore::collect(const std::set<fs::path>& in_use,
                                            Collecting how) const {
  CollectedImages collected;
  std::error_code failure;
  if (!fs::is_directory(config_.dir, failure)) return collected;
  const auto lock = lock_file(config_.dir / ".lock", LockMode::exclusive);
  if (!lock) return lock.error();
  if (auto done = collect_dead_bakes(config_.dir, how, collected); !done) return done.error();
  const std::vector<ListedImage> images = list();
  collected.unreadable = unreadable(*this, images);
  if (collected.unreadable.empty()) {
    FileNames needed = needed_blobs(images);
    needed.merge(names_of(in_use));
    if (auto done = collect_unneeded(config_.dir / "blobs", needed, how, collected); !done) {
      return done.error();
    }
  }
  // An initramfs can be put together again at any time.
  if (auto done = collect_unneeded(config_.dir / "initrd", names_of(in_use), how, collected);
      !done) {
    return done.error();
  }
  return collected;
}

}  // namespace fuse
