#include "hostmode/image_bake.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <system_error>

#include "base/crypto.h"
#include "base/ids.h"
#include "base/text.h"
#include "base/version.h"
#include "hostmode/image_containers.h"
#include "hostmode/image_disk.h"
#include "hostmode/image_files.h"
#include "hostmode/image_kernel.h"
#include "hostmode/image_packages.h"
#include "hostmode/initramfs.h"

namespace fuse {
namespace {

// The folder of one bake.  Whoever holds the lock in it owns it; a folder whose
// lock is free was left by a bake that was killed.
class BakeFolder {
 public:
  static Result<BakeFolder> make(Host& host, const ImageStore& store, const std::string& name) {
    if (auto made = host.make_dirs(store.dir(), 0755); !made) return made.error();
    // One lock a name, in a folder that stays.
    const fs::path names = store.dir() / ".locks";
    if (auto made = host.make_dirs(names, 0755); !made) return made.error();
    auto name_lock = try_lock_file(names / sha256_hex(name));
    if (!name_lock) return name_lock.error();
    if (!name_lock->has_value()) {
      return Error{ErrorCode::conflict, cat("image '", name, "' is being baked already")};
    }
    // Collecting holds the store's lock, so it never sees this folder without its own.
    const auto store_lock = lock_file(store.dir() / ".lock", LockMode::exclusive);
    if (!store_lock) return store_lock.error();
    const fs::path dir = store.dir() / cat(".bake-", random_hex(8));
    if (auto made = host.make_dirs(dir, 0755); !made) return made.error();
    auto own_lock = try_lock_file(dir / "lock");
    if (!own_lock) return own_lock.error();
    return BakeFolder(dir, std::move(**name_lock), std::move(**own_lock));
  }

  [[nodiscard]] const fs::path& path() const { return owned_.dir; }

 private:
  struct Owned {
    Owned(fs::path at, Fd name, Fd own)
        : dir(std::move(at)), name_lock(std::move(name)), own_lock(std::move(own)) {}
    Owned(Owned&& other) noexcept = default;
    Owned& operator=(Owned&&) = delete;
    Owned(const Owned&) = delete;
    Owned& operator=(const Owned&) = delete;
    ~Owned() {
      if (own_lock.valid()) static_cast<void>(remove_tree_of_one_file_system(dir));
    }
    fs::path dir;
    Fd name_lock;
    Fd own_lock;
  };

  BakeFolder(fs::path dir, Fd name_lock, Fd own_lock)
      : owned_(std::move(dir), std::move(name_lock), std::move(own_lock)) {}

  Owned owned_;
};

// One bake underway.
class Bake {
 public:
  Bake(const ImageStore& store, Host& host, Clock& clock, const BakeOptions& options, fs::path work)
      : store_(store),
        host_(host),
        clock_(clock),
        options_(options),
        steps_(host, clock, options.listener, options.stop),
        work_(std::move(work)) {}

  Result<ImageManifest> run(const std::string& name) {
    const bool with_disk = options_.kind == ImageKind::base;
    if (auto ready = prepare(with_disk); !ready) return ready.error();
    PackageFetcher packages(host_, steps_, tools_, work_ / "packages");
    if (auto made = host_.make_dirs(work_ / "packages", 0755); !made) return made.error();
    if (auto done = add_kernel(packages, with_disk); !done) return done.error();
    auto done = with_disk ? add_disk() : add_busybox(packages);
    if (!done) return done.error();
    manifest_.name = name;
    manifest_.boot = "kernel";
    manifest_.arch = "amd64";
    manifest_.agent = "host";
    manifest_.built_by = cat("fuse ", version());
    manifest_.created = to_rfc3339(clock_.wall());
    if (auto published = store_.publish(manifest_); !published) return published.error();
    return manifest_;
  }

 private:
  Result<void> prepare(bool with_disk) {
    const auto release = host_.read_file("/etc/os-release");
    if (!release) return release.error();
    auto distribution = parse_os_release(*release);
    if (!distribution) return distribution.error();
    distribution_ = std::move(distribution).value();
    as_root_ = ::geteuid() == 0;
    std::vector<Tool> needed{{"apt-get", "apt"}, {"apt-cache", "apt"}, {"dpkg-deb", "dpkg"}};
    if (with_disk) {
      for (const Tool& tool : disk_tools(as_root_)) needed.push_back(tool);
    }
    auto tools = find_tools(needed, default_tool_folders);
    if (!tools) return tools.error();
    tools_ = std::move(tools).value();
    return {};
  }

  Result<void> keep(const fs::path& file, std::optional<BlobRef>& as) {
    auto blob = store_.adopt_blob(file);
    if (!blob) return blob.error();
    as = std::move(blob).value();
    return {};
  }

  Result<void> keep_archive(const std::string& bytes, std::optional<BlobRef>& as) {
    const fs::path file = work_ / "archive.cpio";
    if (auto done = host_.replace_file(file, bytes, 0644); !done) return done;
    return keep(file, as);
  }

  Result<void> add_kernel(PackageFetcher& packages, bool with_disk) {
    return steps_.step("fetch the kernel", [&]() -> Result<void> {
      const auto kernel = fetch_kernel(packages, distribution_);
      if (!kernel) return kernel.error();
      std::vector<WantedModule> modules = guest_modules(with_disk);
      if (options_.with_containers) {
        std::ranges::move(container_modules(), std::back_inserter(modules));
      }
      const auto archive = module_archive(steps_, work_, *kernel, modules);
      if (!archive) return archive.error();
      if (auto done = keep_archive(*archive, manifest_.modules); !done) return done;
      manifest_.kernel_version = kernel->version;
      const auto unpacked = unpack_kernel(steps_, work_, *kernel);
      if (!unpacked) return unpacked.error();
      if (auto done = keep(kernel->image, manifest_.kernel); !done) return done;
      return unpacked->empty() ? Result<void>() : keep(*unpacked, manifest_.direct_kernel);
    });
  }

  Result<void> add_busybox(PackageFetcher& packages) {
    return steps_.step("fetch busybox", [&]() -> Result<void> {
      const auto root = packages.fetch("busybox-static");
      if (!root) return root.error();
      fs::path program = *root / "bin/busybox";
      std::error_code failure;
      if (!fs::exists(program, failure)) program = *root / "usr/bin/busybox";
      const auto applets = steps_.run({program.native(), "--list-full"}, work_);
      if (!applets) return applets.error();
      const auto bytes = host_.read_file(program);
      if (!bytes) return bytes.error();
      manifest_.os = "busybox";
      return keep_archive(busybox_root(*bytes, *applets), manifest_.root);
    });
  }

  Result<void> add_disk() {
    DiskPlan plan{.distribution = distribution_,
                  .packages = {"ca-certificates", "procps", "python-is-python3", "python3"},
                  .bytes = options_.disk_bytes,
                  .as_root = as_root_};
    plan.packages.insert(plan.packages.end(), options_.packages.begin(), options_.packages.end());
    if (options_.with_containers) {
      std::ranges::move(container_packages(), std::back_inserter(plan.packages));
      plan.hooks = container_hooks();
    }
    const auto disk = make_disk(host_, steps_, tools_, work_, plan);
    if (!disk) return disk.error();
    manifest_.os = cat(distribution_.id, " ", distribution_.version);
    manifest_.disk_bytes = options_.disk_bytes;
    return keep(*disk, manifest_.disk);
  }

  static std::string busybox_root(std::string_view program, std::string_view applets) {
    InitramfsArchive archive;
    for (const char* dir :
         {"dev", "etc", "mnt", "proc", "run", "sys", "usr/bin", "usr/sbin", "var/log", "var/tmp"}) {
      archive.add_dir(dir);
    }
    archive.add_dir("root", 0700);
    archive.add_dir("tmp", 01777);
    archive.add_file("bin/busybox", program, 0755);
    for (const std::string& applet : split(applets, '\n')) {
      // Our agent is the init; and a path is relative, as the archive wants it.
      if (applet.empty() || applet == "bin/busybox" || applet.find('/') == std::string::npos ||
          applet.ends_with("/init") || applet.starts_with('/')) {
        continue;
      }
      archive.add_symlink(applet, "/bin/busybox");
    }
    archive.add_file("etc/passwd", "root:x:0:0:root:/root:/bin/sh\n");
    archive.add_file("etc/group", "root:x:0:\n");
    archive.add_file("etc/hosts", "127.0.0.1 localhost\n::1 localhost\n");
    archive.add_file("etc/os-release", "ID=fuse-micro\nPRETTY_NAME=\"fuse micro guest\"\n");
    return archive.finish();
  }

  const ImageStore& store_;
  Host& host_;
  Clock& clock_;
  const BakeOptions& options_;
  BakeSteps steps_;
  fs::path work_;
  Distribution distribution_{};
  bool as_root_ = false;
  std::map<std::string, std::string> tools_{};
  ImageManifest manifest_{};
};

}  // namespace

Result<ImageManifest> bake_image(const ImageStore& store, Host& host, Clock& clock,
                                 const std::string& name, const BakeOptions& options) {
  if (auto objection = image_name_objection(name)) {
    return Error{ErrorCode::invalid_argument, *objection};
  }
  const auto folder = BakeFolder::make(host, store, name);
  if (!folder) return folder.error();
  auto baked = Bake(store, host, clock, options, folder->path()).run(name);
  if (!baked) return in_context(cat("bake image '", name, "'"), baked.error());
  if (auto collected = store.collect(options.in_use); !collected) return collected.error();
  return baked;
}

}  // namespace fuse
