#pragma once

#include <sys/types.h>

#include <optional>
#include <string>

#include "base/host.h"

namespace fuse {

// Whom a QEMU that root starts becomes (its -runas), before the guest's first
// instruction and after everything that it needs has been opened.
struct QemuUser {
  std::string name{};
  uid_t uid = 0;
  gid_t gid = 0;
};

// The user `wanted`, as /etc/passwd has it.  With no name, "fuse-qemu" where there is
// such a user, else "nobody".  Nothing for "root", and where `ours`, the user that we
// are, is not root: QEMU then runs as we do.
Result<std::optional<QemuUser>> find_qemu_user(Host& host, const std::string& wanted, uid_t ours);

}  // namespace fuse
