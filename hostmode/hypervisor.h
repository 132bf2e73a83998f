#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/host.h"
#include "base/result.h"
#include "guest/channel/client.h"
#include "hostmode/qemu_process.h"
#include "hostmode/vm_record.h"

namespace fuse {

// A QEMU whose guest has said hello.
struct BootedVm {
  std::shared_ptr<QemuProcess> qemu{};
  std::unique_ptr<GuestClient> guest{};
};

struct BootSpec {
  fs::path dir{};  // the VM's folder
  std::vector<std::string> argv{};
  // From QEMU's start to the guest's hello.
  std::chrono::milliseconds budget{std::chrono::seconds(180)};
  // What else to say of a guest that stays silent all that time.
  std::string hint{};
  // Called once QEMU runs, before anything else is done with it: an error ends it.
  std::function<Result<void>(const QemuProcess& qemu)> on_start{};
};

// Starts a QEMU and waits for its guest.  On any failure, and when `stop` is
// requested, the QEMU is ended first; the error quotes what QEMU said, or the
// last lines of the guest's console.
Result<BootedVm> boot_vm(Host& host, const BootSpec& spec, const StopLimits& limits,
                         std::stop_token stop);

// What a message of QEMU's means to whoever runs the host; "" for most.
std::string meaning_of(std::string_view qemu_words);

}  // namespace fuse
