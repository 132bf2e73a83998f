#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "base/result.h"
#include "hostmode/vm_paths.h"

namespace fuse {

enum class VmState { creating, running, ended };
enum class Accel { kvm, tcg };
enum class NetMode { none, user };

std::string_view to_string(VmState state);
std::string_view to_string(Accel accel);
std::string_view to_string(NetMode mode);

// What a VM boots from.  `disk` is the read-only base of its overlay; empty for
// an image that lives in the initramfs alone.  Without a kernel the disk has a boot
// loader of its own.
struct BootImage {
  std::string name{};
  std::string kernel{};
  std::string initrd{};
  std::string disk{};
  bool has_root = false;  // the initramfs mounts the disk as the root
  std::string init{};     // the disk's own init, run once the agent is up
};

// Whether firmware starts what is on the disk, since there is no kernel to start.
inline bool boots_by_firmware(const BootImage& image) {
  return image.kernel.empty();
}

// A device of the host that is handed to a VM, as the ledger knows it.
struct VmDevice {
  std::string kind{};     // pci, mdev, or vf: a virtual function that is a vGPU
  std::string address{};  // 0000:41:00.0, or the mdev's UUID
  std::string uuid{};     // of the GPU or the MIG instance; empty for companion functions
  std::string group{};    // IOMMU group
};

// How one device came back from a VM.
struct ReleasedDevice {
  std::string address{};
  std::string reset{};    // the method that reset it, as the kernel calls it; empty: none did
  std::string problem{};  // why it is not handed out again; empty: it is
};

enum class ReleaseGrade {
  reset,        // every device was reset and answers
  not_reset,    // they answer, but not all of them can be reset from here
  quarantined,  // at least one was set aside
};
std::string_view to_string(ReleaseGrade grade);

// What was done with a VM's devices when its QEMU was gone, so that another VM can have
// them.
struct DeviceRelease {
  std::string at{};
  ReleaseGrade grade = ReleaseGrade::reset;
  std::vector<ReleasedDevice> devices{};
};

// The process that runs a VM.  A pid alone names nothing: it is compared with
// the start time and the boot it belongs to.
struct VmProcess {
  pid_t pid = 0;
  std::uint64_t start_time = 0;
  std::string boot_id{};
};

// Everything the agent knows about one VM, on disk before anything of it exists
// and until everything of it is gone.
struct VmRecord {
  static constexpr std::int64_t schema = 1;

  std::string uid{};    // ULID; the folder's name and QEMU's -uuid
  std::string vm_id{};  // what callers call it
  std::string name{};   // as requested
  std::string cluster{};
  std::string idempotency_key{};
  std::string region{};
  BootImage image{};
  std::int32_t cpus = 1;
  std::int32_t memory_mb = 1024;
  std::int32_t storage_gb = 0;  // 0: the image's own size
  Accel accel = Accel::tcg;
  NetMode net = NetMode::user;
  std::vector<VmDevice> devices{};
  std::vector<std::string> argv{};  // empty until it is known
  VmProcess process{};              // pid 0 until it was started
  std::string created_at{};
  std::string ended_at{};
  VmState state = VmState::creating;
  bool destroying = false;  // from when its destruction began; it is finished after a crash
  std::string reason{};     // of `ended`, in words
  // Absent while it has its devices, and for a VM that never had any.
  std::optional<DeviceRelease> release{};
};

std::string to_text(const VmRecord& record);
// unimplemented for a record of a newer schema, internal for anything else that
// is not exactly a record; both name what is wrong.  Nothing is filled in.
Result<VmRecord> parse_vm_record(std::string_view text);

// Durable when it returns.  The folder must exist.
Result<void> write_vm_record(Host& host, const StatePaths& paths, const VmRecord& record);
// Also an error when the record is that of another folder.
Result<VmRecord> read_vm_record(Host& host, const StatePaths& paths, const std::string& uid);

// /proc/sys/kernel/random/boot_id.
Result<std::string> read_boot_id(Host& host);

}  // namespace fuse
