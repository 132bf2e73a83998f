#include "hostmode/image_store.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "base/crypto.h"
#include "base/fd.h"
#include "base/files.h"
#include "base/posix_host.h"
#include "base/text.h"
#include "hostmode/image_files.h"
#include "hostmode/initramfs.h"

namespace fuse {
namespace {

constexpr std::string_view default_image = "base";

Error invalid_name(std::string_view name) {
  return Error{ErrorCode::invalid_argument, cat("invalid base image name: '", name, "'")};
}

Error not_there(std::string_view name, const fs::path& path) {
  return Error{ErrorCode::not_found, cat("base image '", name, "' not found at ", path.native(),
                                         "; bake and place a rootfs there before use")};
}

bool looks_like_a_name(std::string_view name) {
  if (trim(name).empty() || name.front() == '/' || name.front() == '~') return false;
  return std::ranges::none_of(name, [](char c) {
    const auto byte = static_cast<unsigned char>(c);
    return byte < 0x20 || byte == 0x7f;
  });
}

// Whether `path`, with every symlink in it followed, is below `dir`.
bool stays_inside(const fs::path& dir, const fs::path& path) {
  std::error_code failure;
  const fs::path real_dir = fs::weakly_canonical(dir, failure);
  if (failure) return false;
  const fs::path real = fs::weakly_canonical(path, failure);
  if (failure) return false;
  const auto [end, rest] =
      std::mismatch(real_dir.begin(), real_dir.end(), real.begin(), real.end());
  return end == real_dir.end() && rest != real.end();
}

bool is_file(const fs::path& path) {
  std::error_code failure;
  return fs::is_regular_file(path, failure);
}

Result<Image> foreign_image(const std::string& name, const fs::path& disk) {
  const auto size = qcow2_virtual_size(disk);
  if (!size) return size.error();
  Image image;
  image.name = name;
  image.disk = disk;
  image.disk_bytes = *size;
  image.foreign = true;
  return image;
}

// What is wrong with a file that a manifest names, or "".
std::string blob_problem(const fs::path& path, const BlobRef& blob) {
  std::error_code failure;
  const std::uintmax_t size = fs::file_size(path, failure);
  if (failure) return cat(path.native(), " is missing");
  if (size != blob.size) return cat(path.native(), " has ", size, " bytes instead of ", blob.size);
  return {};
}

// Whether a file that was put together from these is there, whole as far as its
// size tells.
bool is_composed(const fs::path& file, const std::vector<fs::path>& parts) {
  std::error_code failure;
  std::uintmax_t least = 0;
  for (const fs::path& part : parts) {
    const std::uintmax_t size = fs::file_size(part, failure);
    if (failure) return false;
    least += size;
  }
  const std::uintmax_t size = fs::file_size(file, failure);
  return !failure && size >= least;
}

// What is wrong with a file, read from end to end, or "".
std::string content_problem(const fs::path& path, const BlobRef& blob) {
  if (std::string problem = blob_problem(path, blob); !problem.empty()) return problem;
  const auto digest = sha256_of_file(path);
  if (!digest) return digest.error().message;
  return *digest == blob.sha256 ? std::string()
                                : cat(path.native(), " has other content: its sha256 is ", *digest);
}

// Why an image cannot be started by this program, or "".
std::string start_problem(const ImageManifest& manifest) {
  if (manifest.boot != "kernel") {
    return cat("it boots by \"", manifest.boot, "\", which this program does not know");
  }
  if (!manifest.kernel || !manifest.modules) return "it has no kernel or no modules";
  if (!manifest.disk && !manifest.root) return "it has neither a disk nor a root archive";
  if (manifest.arch != "amd64") {
    return cat("it is for ", manifest.arch.empty() ? "no" : manifest.arch, " machines, not amd64");
  }
  return {};
}

}  // namespace

fs::path ImageStore::blob_path(const BlobRef& blob) const {
  return config_.dir / "blobs" / blob.sha256;
}

Result<std::optional<ImageManifest>> ImageStore::manifest(const std::string& name) const {
  const fs::path json = config_.dir / (name + ".json");
  const fs::path qcow2 = config_.dir / (name + ".qcow2");
  if (!looks_like_a_name(name) || !stays_inside(config_.dir, json) ||
      !stays_inside(config_.dir, qcow2)) {
    return invalid_name(name);
  }
  if (is_file(json)) {
    const auto text = PosixHost().read_file(json);
    if (!text) return text.error();
    auto parsed = parse_image_manifest(*text);
    if (!parsed) return in_context(cat("base image '", name, "'"), parsed.error());
    parsed->name = name;  // where it lies decides
    return std::optional<ImageManifest>(std::move(parsed).value());
  }
  if (is_file(qcow2)) return std::optional<ImageManifest>();
  return not_there(name, qcow2);
}

Result<Image> ImageStore::resolve(const std::string& name) const {
  if (name.empty() && !config_.base_rootfs.empty()) {
    if (!is_file(config_.base_rootfs)) return not_there("default", config_.base_rootfs);
    return foreign_image("default", config_.base_rootfs);
  }
  const std::string wanted = name.empty() ? std::string(default_image) : name;
  const auto found = manifest(wanted);
  if (!found) {
    if (name.empty() && found.error().code == ErrorCode::not_found) {
      return not_there("default", config_.dir / cat(default_image, ".qcow2"));
    }
    return found.error();
  }
  if (!found->has_value()) return foreign_image(wanted, config_.dir / (wanted + ".qcow2"));
  return start_from(**found);
}

Result<Image> ImageStore::start_from(const ImageManifest& manifest) const {
  const auto refuse = [&](std::string_view why) {
    return Error{ErrorCode::internal,
                 cat("base image '", manifest.name, "' is unusable: ", why, "; bake it again")};
  };
  if (const std::string problem = start_problem(manifest); !problem.empty()) return refuse(problem);
  for (const BlobRef& blob : manifest.files()) {
    mark_used(blob_path(blob));
    const std::string problem = blob_problem(blob_path(blob), blob);
    if (!problem.empty()) return refuse(problem);
  }
  auto initrd = compose_initrd(manifest);
  if (!initrd) return in_context(cat("base image '", manifest.name, "'"), initrd.error());
  Image image;
  image.name = manifest.name;
  image.kernel = blob_path(manifest.direct_kernel.value_or(*manifest.kernel));
  image.initrd = std::move(initrd).value();
  if (manifest.disk) image.disk = blob_path(*manifest.disk);
  image.disk_bytes = manifest.disk ? manifest.disk_bytes : 0;
  image.has_root = manifest.disk.has_value();
  image.init = manifest.init;
  image.os = manifest.os;
  image.arch = manifest.arch;
  image.kernel_version = manifest.kernel_version;
  image.driver_branch = manifest.driver_branch;
  return image;
}

Result<fs::path> ImageStore::compose_initrd(const ImageManifest& manifest) const {
  std::string build = config_.agent_build;
  if (build.empty() || build == "unknown") {
    auto digest = sha256_of_file(config_.agent);
    if (!digest) return digest.error();
    build = std::move(digest).value();
  }
  std::vector<fs::path> archives{blob_path(*manifest.modules)};
  std::string recipe = cat("1 ", build, " ", manifest.modules->sha256);
  if (manifest.root) {
    archives.push_back(blob_path(*manifest.root));
    recipe += cat(" ", manifest.root->sha256);
  }
  const fs::path dir = config_.dir / "initrd";
  fs::path file = dir / (sha256_hex(recipe) + ".cpio");
  auto parts = archives;
  parts.push_back(config_.agent);
  if (is_composed(file, parts)) {
    mark_used(file);
    if (is_file(file)) return file;
  }
  if (auto made = PosixHost().make_dirs(dir, 0755); !made) return made.error();
  if (auto done = compose_initramfs(file, archives, config_.agent); !done) return done.error();
  return file;
}

ListedImage ImageStore::describe(const std::string& name, bool foreign) const {
  ListedImage listed;
  listed.foreign = foreign;
  listed.manifest.name = name;
  const auto found = manifest(name);
  if (!found) {
    listed.problem = found.error().message;
    return listed;
  }
  if (foreign) {
    const fs::path disk = config_.dir / (name + ".qcow2");
    const auto size = qcow2_virtual_size(disk);
    if (size) listed.manifest.disk_bytes = *size;
    if (!size) listed.problem = size.error().message;
    listed.manifest.boot = "firmware";
    std::error_code failure;
    const std::uintmax_t bytes = fs::file_size(disk, failure);
    listed.size = failure ? 0 : bytes;
    return listed;
  }
  listed.manifest = found->value();
  listed.size = listed.manifest.size();
  listed.problem = start_problem(listed.manifest);
  for (const BlobRef& blob : listed.manifest.files()) {
    if (listed.problem.empty()) listed.problem = blob_problem(blob_path(blob), blob);
  }
  return listed;
}

std::vector<ListedImage> ImageStore::list() const {
  std::vector<ListedImage> images;
  std::error_code failure;
  for (fs::recursive_directory_iterator it(config_.dir, failure), end; !failure && it != end;
       it.increment(failure)) {
    const fs::path relative = it->path().lexically_relative(config_.dir);
    if (relative == "blobs" || relative == "initrd" ||
        it->path().filename().native().starts_with('.')) {
      it.disable_recursion_pending();
      continue;
    }
    const bool foreign = relative.extension() == ".qcow2";
    if ((!foreign && relative.extension() != ".json") || !is_file(it->path())) continue;
    const bool described = is_file(fs::path(it->path()).replace_extension(".json"));
    if (foreign && described) continue;
    images.push_back(describe(fs::path(relative).replace_extension().native(), foreign));
  }
  std::ranges::sort(images, {}, [](const ListedImage& image) { return image.manifest.name; });
  return images;
}

Result<std::vector<std::string>> ImageStore::verify(const std::string& name) const {
  const auto found = manifest(name);
  if (!found) return found.error();
  std::vector<std::string> problems;
  if (!found->has_value()) {
    const auto size = qcow2_virtual_size(config_.dir / (name + ".qcow2"));
    if (!size) problems.push_back(size.error().message);
    return problems;
  }
  for (const BlobRef& blob : (*found)->files()) {
    std::string problem = content_problem(blob_path(blob), blob);
    if (!problem.empty()) problems.push_back(std::move(problem));
  }
  return problems;
}

Result<BlobRef> ImageStore::adopt_blob(const fs::path& file) const {
  const auto digest = sha256_of_file(file);
  if (!digest) return digest.error();
  struct stat status {};
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid() || ::fstat(fd.get(), &status) < 0) {
    return errno_error(cat("open ", file.native()), errno);
  }
  if (::fchmod(fd.get(), 0444) < 0 || ::fsync(fd.get()) < 0) {
    return errno_error(cat("sync ", file.native()), errno);
  }
  const BlobRef blob{.sha256 = *digest, .size = static_cast<std::uint64_t>(status.st_size)};
  const fs::path place = blob_path(blob);
  if (auto made = PosixHost().make_dirs(place.parent_path(), 0755); !made) return made.error();
  const auto lock = lock_file(config_.dir / ".lock", LockMode::exclusive);
  if (!lock) return lock.error();
  // Also over an equal one: that repairs a blob that was damaged on disk, and a
  // QEMU that has the old one open keeps it.
  mark_used(file);
  if (::rename(file.c_str(), place.c_str()) < 0) {
    return errno_error(cat("move to ", place.native()), errno);
  }
  if (auto done = sync_dir(place.parent_path()); !done) return done.error();
  return blob;
}

Result<void> ImageStore::publish(const ImageManifest& manifest) const {
  if (auto problem = image_name_objection(manifest.name)) {
    return Error{ErrorCode::invalid_argument, *problem};
  }
  const fs::path file = config_.dir / (manifest.name + ".json");
  if (!stays_inside(config_.dir, file)) return invalid_name(manifest.name);
  const auto lock = lock_file(config_.dir / ".lock", LockMode::exclusive);
  if (!lock) return lock.error();
  for (const BlobRef& blob : manifest.files()) {
    const std::string problem = blob_problem(blob_path(blob), blob);
    if (!problem.empty()) return Error{ErrorCode::internal, problem};
  }
  PosixHost host;
  if (auto made = host.make_dirs(file.parent_path(), 0755); !made) return made;
  return host.replace_file(file, to_text(manifest), 0644);
}

std::optional<std::string> image_name_objection(std::string_view name) {
  const auto letter = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  };
  const auto refused = [&](std::string_view why) {
    return cat("invalid base image name: '", valid_utf8(name), "' (", why, ")");
  };
  if (name.size() > 128) return refused("at most 128 characters");
  const std::vector<std::string> parts = split(name, '/');
  for (const std::string& part : parts) {
    const bool good =
        !part.empty() && letter(part.front()) && std::ranges::all_of(part, [&](char c) {
          return letter(c) || c == '.' || c == '-' || c == '_';
        });
    if (!good)
      return refused("letters, digits, '.', '-' and '_', beginning with a letter or digit");
  }
  if (parts.front() == "blobs" || parts.front() == "initrd") {
    return refused("the store itself uses that folder");
  }
  return std::nullopt;
}

}  // namespace fuse
