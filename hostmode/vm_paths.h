#pragma once

#include <string>
#include <string_view>

#include "base/host.h"

namespace fuse {

// Names inside a VM's folder.  QEMU runs with that folder as its own and is given
// these relative names: the path of a unix socket may have no more than 107 bytes.
namespace vm_file {
inline constexpr std::string_view record = "record.json";
inline constexpr std::string_view disk = "disk.qcow2";
inline constexpr std::string_view qmp_socket = "qmp.sock";
inline constexpr std::string_view channel_socket = "ch.sock";
inline constexpr std::string_view serial_log = "serial.log";
inline constexpr std::string_view qemu_log = "qemu.log";
inline constexpr std::string_view job_log = "job.log";
inline constexpr std::string_view job = "job.json";
inline constexpr std::string_view net = "net.json";
// Of VMs that boot by firmware.
inline constexpr std::string_view firmware_vars = "firmware-vars.fd";
inline constexpr std::string_view seed = "seed.iso";
}  // namespace vm_file

// Every path under the agent's state directory is made here and nowhere else.
class StatePaths {
 public:
  explicit StatePaths(fs::path root) : root_(std::move(root)) {}

  [[nodiscard]] const fs::path& root() const { return root_; }
  [[nodiscard]] fs::path lock() const { return root_ / "agent.lock"; }
  [[nodiscard]] fs::path version() const { return root_ / "version"; }
  [[nodiscard]] fs::path accel() const { return root_ / "accel.json"; }
  [[nodiscard]] fs::path quarantine() const { return root_ / "quarantine.json"; }
  // Folders of short-lived guests that only answer a question about this host.
  [[nodiscard]] fs::path probes() const { return root_ / "probes"; }

  [[nodiscard]] fs::path vms() const { return root_ / "vms"; }
  // What a VM's folder is called while it is being removed: by its name alone it
  // is known to hold nothing that is needed.
  [[nodiscard]] fs::path removed_vm(const std::string& uid) const {
    return vms() / (std::string(removed_prefix) + uid);
  }
  static constexpr std::string_view removed_prefix = ".removed-";
  [[nodiscard]] fs::path vm(const std::string& uid) const { return vms() / uid; }
  [[nodiscard]] fs::path vm(const std::string& uid, std::string_view name) const {
    return vm(uid) / name;
  }

  [[nodiscard]] fs::path receipts() const { return root_ / "receipts"; }
  [[nodiscard]] fs::path receipt(const std::string& uid) const { return receipts() / uid; }
  [[nodiscard]] fs::path receipt(const std::string& uid, std::string_view name) const {
    return receipt(uid) / name;
  }

 private:
  fs::path root_;
};

// Whether `text` is a ULID in its one spelling, and so safe as a folder's name.
[[nodiscard]] bool is_uid(std::string_view text);

// The vm_id of a requested name: lower case, every run of other characters than
// [a-z0-9-] one dash, dashes trimmed at both ends, "vm" when nothing is left.
// Also applied to an id before it is looked up.
std::string vm_id_of(std::string_view name);

// What a guest is called: Linux gives up on host names beyond 64 bytes, and VMs' ids
// come from task names.
std::string guest_host_name(const std::string& vm_id);

}  // namespace fuse
