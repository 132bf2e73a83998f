#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hostmode/memory_plan.h"
#include "hostmode/qemu_user.h"
#include "hostmode/vm_record.h"

namespace fuse {

// What an argv needs to know besides the record.
struct QemuFacts {
  std::string qemu = "qemu-system-x86_64";
  // Whether this QEMU can confine itself with -sandbox.
  bool sandbox = true;
  // Whom it becomes once it has opened everything; absent: it stays who starts it.
  std::optional<QemuUser> user{};
  // Where the guest's memory is to be on the host.
  MemoryPlan memory{};
  // Address space for the large regions of its devices, in GiB; 0: QEMU's own choice.
  std::uint64_t mmio_gib = 0;
  // The file with the firmware's code, for what boots by it.
  std::string firmware_code{};
};

// QEMU's name for the VM's network, to which port forwards are added.
inline constexpr std::string_view net_id = "net0";

// The command line that runs a VM.  All paths of the VM's own folder are relative
// to it.  Depends on its arguments alone.
std::vector<std::string> qemu_argv(const VmRecord& vm, const QemuFacts& facts);

// `value` inside a QEMU option, which splits at single commas.
std::string qemu_escaped(std::string_view value);

}  // namespace fuse
