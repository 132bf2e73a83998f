#include "hostmode/hypervisor.h"

#include <algorithm>
#include <array>
#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "hostmode/unix_socket.h"
#include "hostmode/vm_paths.h"

namespace fuse {

namespace {

using std::chrono::milliseconds;
using SteadyClock = std::chrono::steady_clock;

milliseconds left_until(SteadyClock::time_point deadline) {
  return std::max(milliseconds(0),
                  std::chrono::duration_cast<milliseconds>(deadline - SteadyClock::now()));
}

// QEMU makes its sockets soon after it starts, unless it ends instead.
Result<Fd> await_channel(QemuProcess& qemu, const fs::path& dir, SteadyClock::time_point deadline,
                         const std::stop_token& stop) {
  while (true) {
    auto socket = connect_unix(dir, vm_file::channel_socket);
    if (socket) return socket;
    const bool early = socket.error().code == ErrorCode::not_found ||
                       socket.error().code == ErrorCode::unreachable;
    const bool hopeless = stop.stop_requested() || left_until(deadline).count() == 0;
    if (!early || hopeless) return socket.error();
    const auto ended = qemu.wait(milliseconds(10));
    if (!ended) return ended.error();
    if (*ended) return Error{ErrorCode::unreachable, "QEMU ended before it made its sockets"};
  }
}

Error explained(std::string message) {
  const std::string meaning = meaning_of(message);
  return {ErrorCode::internal,
          meaning.empty() ? std::move(message) : cat(message, " (", meaning, ")")};
}

// The error for a QEMU whose guest did not say hello because of `cause`.
Error boot_failure(QemuProcess& qemu, const BootSpec& spec, SteadyClock::time_point deadline,
                   const Error& cause) {
  // A connection that broke tells of the end a moment before the process does.
  const auto ended = qemu.wait(milliseconds(500));
  if (ended && *ended) {
    return explained(describe_end(spec.dir, qemu.is_child() ? *ended : std::nullopt));
  }
  std::string message = "the guest did not say hello";
  if (left_until(deadline).count() == 0) {
    message += cat(" within ", human_duration(spec.budget));
    if (!spec.hint.empty()) message += cat("; ", spec.hint);
  } else {
    message += cat(": ", cause.message);
  }
  const std::string console = last_console_lines(spec.dir, 5);
  message +=
      console.empty() ? "; its console is empty" : cat("; its console ends with:\n", console);
  return {ErrorCode::internal, std::move(message)};
}

// What UEFI firmware says when it gives up.
bool found_nothing_to_boot(const fs::path& dir) {
  const std::string console = last_console_lines(dir, 60);
  return console.find("No bootable option or device was found") != std::string::npos ||
         console.find("UEFI Interactive Shell") != std::string::npos;
}

// In slices, for the console to be looked at in between.
Result<std::unique_ptr<GuestClient>> await_hello(QemuProcess& qemu, const BootSpec& spec,
                                                 SteadyClock::time_point deadline,
                                                 const std::stop_token& stop) {
  constexpr milliseconds slice = std::chrono::seconds(2);
  while (true) {
    auto socket = await_channel(qemu, spec.dir, deadline, stop);
    if (!socket) return socket.error();
    const milliseconds left = left_until(deadline);
    auto guest =
        GuestClient::connect(std::move(socket).value(), {.hello = std::min(left, slice)}, stop);
    if (guest || left <= slice || stop.stop_requested() || !qemu.running()) return guest;
    if (found_nothing_to_boot(spec.dir)) {
      return Error{ErrorCode::internal,
                   "its firmware, UEFI, has found nothing on the disk that it could start"};
    }
  }
}

}  // namespace

Result<BootedVm> boot_vm(Host& host, const BootSpec& spec, const StopLimits& limits,
                         std::stop_token stop) {
  const auto deadline = SteadyClock::now() + spec.budget;
  auto qemu = launch_qemu(host, spec.dir, spec.argv);
  if (!qemu) return qemu.error();
  const auto give_up = [&](Error error) {
    const auto stopped = stop_qemu(**qemu, spec.dir, limits);
    if (!stopped) error.message += cat("; moreover, ", stopped.error().message);
    return error;
  };
  if (spec.on_start) {
    if (auto noted = spec.on_start(**qemu); !noted) return give_up(noted.error());
  }
  auto guest = await_hello(**qemu, spec, deadline, stop);
  if (stop.stop_requested()) {
    return give_up({ErrorCode::unavailable, "the vm was destroyed while it was being created"});
  }
  if (!guest) return give_up(boot_failure(**qemu, spec, deadline, guest.error()));
  return BootedVm{std::move(qemu).value(), std::move(guest).value()};
}

std::string meaning_of(std::string_view qemu_words) {
  struct Meaning {
    std::string_view words;
    std::string_view also;  // what must be there besides
    std::string_view meaning;
  };
  constexpr std::array<Meaning, 20> meanings = {{
      {"Is another process using the image", "", "another process has this disk open"},
      {"Failed to get \"write\" lock", "", "another process has this disk open"},
      {"Failed to get shared \"write\" lock", "", "another process has this disk open for writing"},
      {"cannot set up guest memory", "", "the host has not that much memory free"},
      {"Could not access KVM kernel module: Permission denied", "",
       "this user may not open /dev/kvm: add it to the group kvm"},
      {"Could not access KVM kernel module: No such file", "", "the host has no KVM"},
      {"is not viable", "iommu_group",
       "another function of the device's IOMMU group is on a driver of the host's: `fuse agent "
       "probe` shows which, `fuse agent bind` binds them all"},
      {"error getting device from group", "",
       "that function is not on vfio-pci, or it is a bridge: fuse agent bind"},
      {"device is already attached", "", "the same function is named twice"},
      {"no iommu_group found", "",
       "the host's IOMMU is off: `fuse agent doctor` says how to switch it on"},
      {"Failed to set iommu for container", "",
       "the host's IOMMU cannot remap interrupts, and VFIO then hands nothing over"},
      {"no such host device", "/mdev/",
       "that mediated device is gone, as after a restart of the host: fuse agent mig apply"},
      {"no such host device", "", "the device is gone from the host: fuse agent probe"},
      {"failed to open /dev/vfio/", "Device or resource busy",
       "another process has a device of that IOMMU group open: `fuse agent probe` names it"},
      {"failed to open /dev/vfio/", "Permission denied",
       "the user whom QEMU runs as may not open that file"},
      {"failed to open /dev/vfio/", "No such file",
       "nothing of the device's IOMMU group is on vfio-pci: fuse agent bind"},
      {"VFIO_MAP_DMA failed: Cannot allocate memory", "",
       "a VM with devices has all its memory locked, and QEMU may not lock that much: "
       "LimitMEMLOCK=infinity in the agent's unit"},
      {"vfio_dma_map", "-12",
       "all memory of a VM with devices is locked, and QEMU may not lock "
       "that much: LimitMEMLOCK=infinity in the agent's unit"},
      {"Failed to set", "id(",
       "QEMU may not change its user here: with FUSE_QEMU_USER=root it stays root"},
      {"No space left on device", "", "the disk that holds the state directory is full"},
  }};
  const auto said = [&](std::string_view words) {
    return qemu_words.find(words) != std::string_view::npos;
  };
  for (const Meaning& known : meanings) {
    if (said(known.words) && said(known.also)) return std::string(known.meaning);
  }
  return "";
}

}  // namespace fuse
