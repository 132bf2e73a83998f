#include "hostmode/image_kernel.h"

#include <map>
#include <set>
#include <system_error>

#include "base/posix_host.h"
#include "base/text.h"
#include "hostmode/initramfs.h"
#include "hostmode/initramfs_modules.h"
#include "hostmode/kernel_image.h"

namespace fuse {
namespace {

bool is_dir(const fs::path& path) {
  std::error_code failure;
  return fs::is_directory(path, failure);
}

// /lib is a link to /usr/lib by now, and packages ship either.
fs::path modules_dir(const fs::path& root, const std::string& version) {
  for (const char* lib : {"lib", "usr/lib"}) {
    fs::path dir = root / lib / "modules" / version;
    if (is_dir(dir / "kernel")) return dir;
  }
  return {};
}

// What is in a file that was packed by `program`.
Result<std::string> unpack(BakeSteps& unpacker, const fs::path& work, std::string_view program,
                           const fs::path& file) {
  const std::string package = program == "xz" ? "xz-utils" : std::string(program);
  const std::vector<Tool> needed{{std::string(program), package}};
  const auto tools = find_tools(needed, default_tool_folders);
  if (!tools) return tools.error();
  return unpacker.run({tools->begin()->second, "-dc", file.native()}, work);
}

// The modules of one kernel.
class ModuleTree {
 public:
  static Result<ModuleTree> read(BakeSteps& unpacker, const fs::path& work,
                                 const FetchedKernel& kernel) {
    ModuleTree tree(unpacker, work);
    const auto builtin = PosixHost().read_file(kernel.modules / "modules.builtin");
    if (!builtin) return builtin.error();
    for (const std::string& line : split(*builtin, '\n')) {
      if (!line.empty()) tree.builtin_.insert(module_name_of(line));
    }
    std::error_code failure;
    for (fs::recursive_directory_iterator it(kernel.modules / "kernel", failure), end;
         !failure && it != end; it.increment(failure)) {
      const std::string name = it->path().filename().native();
      if (name.find(".ko") != std::string::npos) tree.files_[module_name_of(name)] = it->path();
    }
    if (failure) return errno_error("list the kernel's modules", failure.value());
    return tree;
  }

  [[nodiscard]] bool is_builtin(const std::string& name) const { return builtin_.contains(name); }
  [[nodiscard]] bool has(const std::string& name) const { return files_.contains(name); }

  // The module's bytes, unpacked; kept for the next time.
  Result<std::string_view> bytes(const std::string& name) {
    if (const auto known = bytes_.find(name); known != bytes_.end())
      return std::string_view(known->second);
    const auto file = files_.find(name);
    if (file == files_.end()) {
      return Error{ErrorCode::unavailable, cat("this kernel has no module ", name)};
    }
    auto read = unpacked(file->second);
    if (!read) return read.error();
    return std::string_view(bytes_.emplace(name, std::move(read).value()).first->second);
  }

 private:
  ModuleTree(BakeSteps& unpacker, const fs::path& work) : unpacker_(unpacker), work_(work) {}

  Result<std::string> unpacked(const fs::path& file) {
    const std::string extension = file.extension().native();
    if (extension == ".ko") return PosixHost().read_file(file);
    const std::map<std::string, std::string_view> packings{
        {".xz", "xz"}, {".zst", "zstd"}, {".gz", "gzip"}};
    const auto known = packings.find(extension);
    if (known == packings.end()) {
      return Error{ErrorCode::unimplemented,
                   cat("module packed in an unknown way: ", file.native())};
    }
    return unpack(unpacker_, work_, known->second, file);
  }

  BakeSteps& unpacker_;
  fs::path work_;
  std::set<std::string> builtin_{};
  std::map<std::string, fs::path> files_{};
  std::map<std::string, std::string> bytes_{};
};

std::vector<std::string> loadable(const ModuleTree& tree, std::span<const WantedModule> wanted) {
  std::vector<std::string> names;
  for (const WantedModule& module : wanted) {
    if (tree.is_builtin(module.name)) continue;
    if (module.optional && !tree.has(module.name)) continue;
    names.push_back(module.name);
  }
  return names;
}

}  // namespace

Result<FetchedKernel> fetch_kernel(PackageFetcher& packages, const Distribution& distribution) {
  const bool ubuntu = distribution.id == "ubuntu";
  const auto package =
      packages.behind(ubuntu ? "linux-image-virtual" : "linux-image-cloud-amd64", "linux-image-");
  if (!package) return package.error();
  const auto root = packages.fetch(*package);
  if (!root) return root.error();
  const auto names = PosixHost().list_dir(*root / "boot");
  if (!names) return names.error();
  constexpr std::string_view prefix = "vmlinuz-";
  FetchedKernel kernel;
  for (const std::string& name : *names) {
    if (!name.starts_with(prefix)) continue;
    kernel.version = name.substr(prefix.size());
    kernel.image = *root / "boot" / name;
  }
  if (kernel.version.empty()) {
    return Error{ErrorCode::unavailable, cat("package ", *package, " holds no kernel")};
  }
  kernel.modules = modules_dir(*root, kernel.version);
  if (kernel.modules.empty()) {
    const auto extra = packages.fetch(cat("linux-modules-", kernel.version));
    if (!extra) return extra.error();
    kernel.modules = modules_dir(*extra, kernel.version);
  }
  if (!kernel.modules.empty()) return kernel;
  return Error{ErrorCode::unavailable, cat("no modules found for kernel ", kernel.version)};
}

Result<fs::path> unpack_kernel(BakeSteps& unpacker, const fs::path& work,
                               const FetchedKernel& kernel) {
  PosixHost host;
  const auto image = host.read_file(kernel.image);
  if (!image) return image.error();
  const auto packed = packed_kernel(*image);
  // Whatever else it is: the firmware may know how to start it.
  if (!packed) return fs::path();
  const fs::path file = work / "kernel.packed";
  if (auto done = host.replace_file(file, packed->bytes, 0600); !done) return done.error();
  const auto elf = unpack(unpacker, work, packed->packing, file);
  if (!elf) return elf.error();
  if (elf->size() != packed->unpacked_size) {
    return Error{ErrorCode::unavailable,
                 cat("kernel ", kernel.version, " unpacks to ", elf->size(),
                     " bytes, and its header says ", packed->unpacked_size)};
  }
  if (!has_direct_entry(*elf)) return fs::path();
  fs::path unpacked = work / "kernel.elf";
  if (auto done = host.replace_file(unpacked, *elf, 0644); !done) return done.error();
  return unpacked;
}

std::vector<WantedModule> guest_modules(bool with_disk) {
  std::vector<WantedModule> wanted{{.name = "virtio_pci"}};
  if (with_disk) {
    wanted.insert(
        wanted.end(),
        {{.name = "virtio_blk"}, {.name = "crc32c_generic", .optional = true}, {.name = "ext4"}});
  }
  wanted.insert(wanted.end(), {{.name = "virtio_console"},
                               {.name = "virtio_net"},
                               {.name = "virtio_rng", .optional = true},
                               {.name = "qemu_fw_cfg", .optional = true}});
  return wanted;
}

Result<std::string> module_archive(BakeSteps& unpacker, const fs::path& work,
                                   const FetchedKernel& kernel,
                                   std::span<const WantedModule> wanted) {
  auto tree = ModuleTree::read(unpacker, work, kernel);
  if (!tree) return tree.error();
  const auto order = module_load_order(
      loadable(*tree, wanted), [&](const std::string& name) -> Result<std::vector<std::string>> {
        if (tree->is_builtin(name)) return std::vector<std::string>();
        const auto bytes = tree->bytes(name);
        if (!bytes) return bytes.error();
        return module_dependencies(*bytes);
      });
  if (!order) return order.error();
  InitramfsArchive archive;
  std::string list;
  for (const std::string& name : *order) {
    if (tree->is_builtin(name)) continue;
    const auto bytes = tree->bytes(name);
    if (!bytes) return bytes.error();
    const std::string path = cat("lib/modules/", name, ".ko");
    archive.add_file(path, *bytes);
    list += cat("/", path, "\n");
  }
  archive.add_file("lib/modules/fuse.order", list);
  return archive.finish();
}

}  // namespace fuse
