#pragma once

#include <vector>

#include "base/host.h"
#include "hostmode/devices/device_files.h"
#include "hostmode/devices/device_reset.h"
#include "hostmode/vm_record.h"

namespace fuse {

// Takes the devices of a VM back, whose QEMU is gone: nothing may have them open any more,
// cards are reset, and each must answer.  A mediated device or a vGPU's virtual
// function is left to its driver, which clears it when it is closed.  What is not
// sound is set aside with its reason.  `at` is left to the caller.  Fails only when
// something unsound could not be set aside.
Result<DeviceRelease> release_devices(Host& host, const DevicePaths& paths,
                                      const std::vector<VmDevice>& devices,
                                      const ResetTools& tools);

// "reset (0000:41:00.0: flr, 0000:41:00.1: hot)"
std::string release_words(const DeviceRelease& release);

}  // namespace fuse
