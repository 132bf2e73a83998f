#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <optional>
#include <thread>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/posix_host.h"
#include "base/text.h"
#include "guest/init_system.h"

namespace fuse {

namespace {

constexpr std::chrono::seconds device_limit(20);
constexpr std::chrono::milliseconds look_again(10);
constexpr std::array file_systems = {"ext4", "xfs", "btrfs"};
// linux/fs.h and linux/ext4.h cannot be included beside the C library's headers
// everywhere.
constexpr unsigned long block_device_size = _IOR(0x12, 114, std::size_t);
constexpr unsigned long ext4_resize = _IOW('f', 16, std::uint64_t);

Result<void> await_device(const std::string& device) {
  const SteadyTime give_up = std::chrono::steady_clock::now() + device_limit;
  struct stat found {};
  while (::stat(device.c_str(), &found) < 0 || !S_ISBLK(found.st_mode)) {
    if (std::chrono::steady_clock::now() >= give_up) {
      return Error{ErrorCode::not_found, cat("there is no disk ", device)};
    }
    std::this_thread::sleep_for(look_again);
  }
  return {};
}

std::uint32_t little_endian(const unsigned char* bytes) {
  return static_cast<std::uint32_t>(bytes[0]) | static_cast<std::uint32_t>(bytes[1]) << 8U |
         static_cast<std::uint32_t>(bytes[2]) << 16U | static_cast<std::uint32_t>(bytes[3]) << 24U;
}

struct Ext4Size {
  std::uint64_t blocks = 0;
  std::uint64_t block_size = 0;
};

// From the superblock, 1024 bytes behind the device's beginning.
std::optional<Ext4Size> ext4_size(int device) {
  constexpr std::size_t size = 1024;
  std::array<unsigned char, size> block{};
  if (::pread(device, block.data(), size, size) != static_cast<ssize_t>(size)) return std::nullopt;
  constexpr std::size_t magic_at = 0x38;
  if (block[magic_at] != 0x53 || block[magic_at + 1] != 0xEF) return std::nullopt;
  constexpr std::uint32_t incompat_64bit = 0x80;
  const bool is_64bit = (little_endian(&block[0x60]) & incompat_64bit) != 0;
  const std::uint64_t high = is_64bit ? little_endian(&block[0x150]) : 0;
  const std::uint32_t log_size = little_endian(&block[0x18]);
  if (log_size > 6) return std::nullopt;
  return Ext4Size{.blocks = high << 32U | little_endian(&block[0x4]),
                  .block_size = std::uint64_t{1024} << log_size};
}

Result<void> grow(const std::string& device, const fs::path& at) {
  const Fd disk(::open(device.c_str(), O_RDONLY | O_CLOEXEC));
  std::uint64_t bytes = 0;
  if (!disk.valid() || ::ioctl(disk.get(), block_device_size, &bytes) < 0) {
    return errno_error(cat("read the size of ", device), errno);
  }
  const auto now = ext4_size(disk.get());
  if (!now) return {};
  const std::uint64_t blocks = bytes / now->block_size;
  if (blocks <= now->blocks) return {};
  const Fd root(::open(at.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!root.valid() || ::ioctl(root.get(), ext4_resize, &blocks) < 0) {
    return errno_error(cat("grow ", device), errno);
  }
  return {};
}

// What lies on the initramfs itself; mounts in it are passed over.
void remove_tree(int parent, const std::string& name, dev_t device) {
  struct stat found {};
  if (::fstatat(parent, name.c_str(), &found, AT_SYMLINK_NOFOLLOW) < 0) return;
  if (found.st_dev != device) return;
  if (!S_ISDIR(found.st_mode)) {
    ::unlinkat(parent, name.c_str(), 0);
    return;
  }
  const Fd dir(::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!dir.valid()) return;
  const auto names = PosixHost().list_dir(cat("/proc/self/fd/", dir.get()));
  if (!names) return;
  for (const std::string& child : *names) remove_tree(dir.get(), child, device);
  ::unlinkat(parent, name.c_str(), AT_REMOVEDIR);
}

void empty_initramfs() {
  const Fd root(::open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  struct stat found {};
  if (!root.valid() || ::fstat(root.get(), &found) < 0) return;
  const auto names = PosixHost().list_dir("/");
  if (!names) return;
  for (const std::string& name : *names) remove_tree(root.get(), name, found.st_dev);
}

}  // namespace

Result<void> mount_root(const std::string& device, const fs::path& at) {
  if (auto there = await_device(device); !there) return there;
  if (auto made = PosixHost().make_dirs(at, 0755); !made) return made;
  int failure = 0;
  for (const char* type : file_systems) {
    if (::mount(device.c_str(), at.c_str(), type, MS_NOATIME, "") == 0) return grow(device, at);
    // A type the kernel does not know says less than one that did not fit.
    if (failure == 0 || errno != ENODEV) failure = errno;
  }
  return errno_error(cat("mount ", device), failure);
}

Result<void> switch_root(const fs::path& at) {
  empty_initramfs();
  for (const char* kept : {"/dev", "/proc", "/sys", "/run"}) {
    const fs::path into = at / fs::path(kept).relative_path();
    ::mkdir(into.c_str(), 0755);
    if (::mount(kept, into.c_str(), nullptr, MS_MOVE, nullptr) < 0) {
      return errno_error(cat("move ", kept), errno);
    }
  }
  if (::chdir(at.c_str()) < 0 || ::mount(".", "/", nullptr, MS_MOVE, nullptr) < 0 ||
      ::chroot(".") < 0 || ::chdir("/") < 0) {
    return errno_error("go on in the disk's root", errno);
  }
  return {};
}

}  // namespace fuse
