#pragma once

#include <string>
#include <string_view>

#include "base/host.h"
#include "base/result.h"
#include "guest/boot_options.h"

// The parts of bringing a guest up that act on the running kernel.
namespace fuse {

// proc, sys, dev, devpts, run, cgroup; and the console as stdin, stdout, stderr.
Result<void> mount_kernel_filesystems();
// A tmpfs, with the folder for it.
Result<void> mount_tmpfs(const fs::path& at, std::string_view options);
// The modules in /lib/modules/fuse.order, in that order.  One that is there
// already is no failure; the first that fails is told of, after the others were
// tried.
Result<void> load_modules();
// The loopback, and the first card with the address.
Result<void> configure_network(const std::optional<NetworkOptions>& network);
void set_hostname(const std::string& name);
// /etc/hostname, /etc/hosts and /etc/resolv.conf below `root`.
void write_names(const fs::path& root, const BootOptions& options);

// Waits for the device, mounts it at `at` and grows its file system to the
// device's size.
Result<void> mount_root(const std::string& device, const fs::path& at);
// Moves /proc, /sys, /dev and /run below `at`, makes it the root of this process
// and gives the initramfs's memory back.
Result<void> switch_root(const fs::path& at);

}  // namespace fuse
