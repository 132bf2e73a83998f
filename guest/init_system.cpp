#include "guest/init_system.h"

#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <string>

#include "base/fd.h"
#include "base/posix_host.h"
#include "base/text.h"

namespace fuse {

namespace {

struct Mount {
  const char* what;
  const char* where;
  const char* type;
  unsigned long flags;
  const char* options;
  bool needed;
};

constexpr unsigned long no_programs = MS_NOSUID | MS_NODEV | MS_NOEXEC;

constexpr std::array mounts = {
    Mount{"proc", "/proc", "proc", no_programs, "", true},
    Mount{"sysfs", "/sys", "sysfs", no_programs, "", true},
    Mount{"devtmpfs", "/dev", "devtmpfs", MS_NOSUID, "mode=0755", true},
    Mount{"devpts", "/dev/pts", "devpts", MS_NOSUID | MS_NOEXEC, "gid=5,mode=620,ptmxmode=666",
          true},
    Mount{"tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777", true},
    Mount{"tmpfs", "/run", "tmpfs", MS_NOSUID | MS_NODEV, "mode=0755", true},
    Mount{"cgroup2", "/sys/fs/cgroup", "cgroup2", no_programs, "", false},
};

// Before this, stdin and the others may be closed: the kernel had no console to
// open in the initramfs.
void take_console() {
  const int fd = ::open("/dev/console", O_RDWR | O_NOCTTY);
  if (fd < 0) return;
  for (int target = 0; target < 3; ++target) {
    if (fd != target) ::dup2(fd, target);
  }
  if (fd > 2) ::close(fd);
}

Result<void> load_module(const std::string& file) {
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return errno_error(cat("open module ", file), errno);
  if (::syscall(SYS_finit_module, fd.get(), "", 0) == 0 || errno == EEXIST) return {};
  return errno_error(cat("load module ", file), errno);
}

}  // namespace

Result<void> mount_kernel_filesystems() {
  for (const Mount& mount : mounts) {
    ::mkdir(mount.where, 0755);
    const int done = ::mount(mount.what, mount.where, mount.type, mount.flags, mount.options);
    // A kernel may have mounted /dev by itself.
    if (done == 0 || errno == EBUSY || !mount.needed) continue;
    return errno_error(cat("mount ", mount.where), errno);
  }
  take_console();
  return {};
}

Result<void> mount_tmpfs(const fs::path& at, std::string_view options) {
  if (auto made = PosixHost().make_dirs(at, 0755); !made) return made;
  if (::mount("tmpfs", at.c_str(), "tmpfs", MS_NOSUID | MS_NODEV, std::string(options).c_str()) <
      0) {
    return errno_error(cat("mount ", at.native()), errno);
  }
  return {};
}

Result<void> load_modules() {
  const auto order = PosixHost().read_file("/lib/modules/fuse.order");
  if (!order) {
    if (order.error().code == ErrorCode::not_found) return {};
    return order.error();
  }
  Result<void> outcome;
  for (const std::string& line : split(*order, '\n')) {
    const std::string_view name = trim(line);
    if (name.empty() || name.front() == '#') continue;
    const auto loaded = load_module((fs::path("/") / name).native());
    if (!loaded && outcome) outcome = loaded;
  }
  return outcome;
}

void set_hostname(const std::string& name) {
  if (!name.empty()) ::sethostname(name.data(), name.size());
}

void write_names(const fs::path& root, const BootOptions& options) {
  PosixHost host(root);
  (void)host.make_dirs("/etc", 0755);
  const auto there = host.read_file("/etc/hosts");
  std::string hosts = there ? *there : "127.0.0.1 localhost\n";
  if (!options.hostname.empty()) {
    (void)host.replace_file("/etc/hostname", options.hostname + "\n", 0644);
    const std::string line = cat("127.0.1.1 ", options.hostname, "\n");
    if (hosts.find(line) == std::string::npos) hosts += line;
  }
  (void)host.replace_file("/etc/hosts", hosts, 0644);
  if (!options.network || options.network->dns.empty()) return;
  // Often a link into /run, to what nothing has written yet: replaced.
  std::error_code failure;
  const fs::path resolv = root / "etc/resolv.conf";
  fs::remove(resolv, failure);
  (void)host.replace_file("/etc/resolv.conf", cat("nameserver ", options.network->dns, "\n"), 0644);
}

}  // namespace fuse
