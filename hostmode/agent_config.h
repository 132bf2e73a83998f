#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "hostmode/accel.h"
#include "hostmode/devices/device_files.h"
#include "hostmode/devices/device_reset.h"
#include "hostmode/devices/vfio_reset.h"
#include "hostmode/image_store.h"
#include "hostmode/memlock.h"
#include "hostmode/qemu_process.h"
#include "hostmode/receipts.h"
#include "hostmode/user_net.h"
#include "hostmode/vm_record.h"
#include "hostmode/vm_session.h"

namespace fuse {

struct AgentConfig {
  fs::path state_dir{};
  std::string qemu = "qemu-system-x86_64";  // looked up in `path` unless it has a slash
  std::string qemu_img = "qemu-img";
  // The firmware's code, for images that boot by it; empty: where packages install it.
  fs::path ovmf_code{};
  // What runs as the agent in guests that get it by a disk.
  fs::path guest_program = "/proc/self/exe";
  std::string path = "/usr/local/bin:/usr/bin:/bin";
  std::string qemu_user{};  // as find_qemu_user
  // Where the files about this host's devices are; no folder: none is handed over.
  DevicePaths devices{};
  AccelPolicy accel = AccelPolicy::automatic;
  fs::path kvm_device = "/dev/kvm";
  NetMode net = NetMode::user;
  PortPlan ports{};
  // How many CPUs of VMs share one of the host's, in what capacity() tells.
  std::int32_t cpu_share = 1;
  // The image that is booted to find out whether KVM works.
  std::string kvm_trial_image = "micro";
  std::chrono::milliseconds kvm_trial_budget{std::chrono::seconds(5)};
  // From QEMU's start to the guest's hello; a slow guest on a busy machine without
  // KVM takes a minute.
  std::chrono::milliseconds boot_budget{std::chrono::seconds(180)};
  // The same by firmware, a boot loader and all that comes before cloud-init is done:
  // ten times a boot of ours.
  std::chrono::milliseconds firmware_boot_budget{std::chrono::minutes(8)};
  std::chrono::milliseconds housekeeping{std::chrono::seconds(60)};
  // How often each VM is looked at: whether its folder is still there, and whether
  // it waits for room on the disk.
  std::chrono::milliseconds look_interval{std::chrono::seconds(2)};
  // What the guest's console may fill before it is cut short.
  std::uint64_t most_console_bytes = std::uint64_t{8} << 20U;
  StopLimits stop{};
  SessionLimits session{};
  ReceiptLimits receipts{};
};

// The world as the agent sees it.
struct AgentWorld {
  Host& host;
  const Clock& clock;
  Log& log;
  // As ImageStore::resolve.
  std::function<Result<Image>(const std::string& name)> resolve_image{};
  // Called, from any thread, once the end of a job or of a VM has become known.
  std::function<void()> on_end = [] {};
  // How devices are reset when a VM gives them back.
  ResetTools reset{.hot_reset = vfio_hot_reset};
  // Lets a QEMU that is started from then on lock so many bytes of memory.
  std::function<Result<void>(std::uint64_t bytes)> allow_locking = fuse::allow_locking;
};

}  // namespace fuse
