#pragma once

#include "base/host.h"
#include "base/result.h"

namespace fuse {

// UEFI firmware for VMs: its code, which they share, and its variables as they are
// before a first boot, of which each VM has a copy.
struct Firmware {
  fs::path code{};
  fs::path vars{};
};

// The firmware whose code is in `code`, or where packages install one when that is
// empty.  The error says what is missing and how to get it.
Result<Firmware> find_firmware(Host& host, const fs::path& code);

}  // namespace fuse
