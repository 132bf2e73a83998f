#include "hostmode/memlock.h"

#include <linux/capability.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/text.h"
#include "base/units.h"

namespace fuse {

std::uint64_t bytes_to_lock(std::int32_t memory_mb) {
  constexpr std::uint64_t beside = std::uint64_t{1} << 30U;
  return (static_cast<std::uint64_t>(std::max(0, memory_mb)) << 20U) + beside;
}

Result<LockLimit> raised_lock_limit(const LockLimit& now, std::uint64_t bytes, bool privileged) {
  if (now.soft == LockLimit::none) return now;
  if (privileged) return LockLimit{LockLimit::none, LockLimit::none};
  if (now.hard >= bytes) return LockLimit{now.hard, now.hard};
  return Error{ErrorCode::internal,
               cat("a vm with devices has all its memory locked: that takes ", human_bytes(bytes),
                   ", and this user may lock ", human_bytes(now.hard)),
               {{"hint",
                 "LimitMEMLOCK=infinity in the agent's unit, or memlock in "
                 "/etc/security/limits.conf"}}};
}

namespace {

// CAP_IPC_LOCK: the kernel asks for no limit then.
bool may_lock_anyway() {
  __user_cap_header_struct head{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> capabilities{};
  if (::syscall(SYS_capget, &head, capabilities.data()) != 0) return false;
  return (capabilities[0].effective & (1U << CAP_IPC_LOCK)) != 0;
}

}  // namespace

Result<void> allow_locking(std::uint64_t bytes) {
  static_assert(RLIM_INFINITY == LockLimit::none);
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) < 0) return errno_error("getrlimit", errno);
  const LockLimit now{limit.rlim_cur, limit.rlim_max};
  const auto raised = raised_lock_limit(now, bytes, ::geteuid() == 0);
  if (!raised) return raised.error();
  if (*raised == now) return {};
  limit = {.rlim_cur = raised->soft, .rlim_max = raised->hard};
  if (::setrlimit(RLIMIT_MEMLOCK, &limit) == 0) return {};
  // Root without CAP_SYS_RESOURCE, in a container: as any user then, unless no limit counts.
  if (may_lock_anyway()) return {};
  const auto own = raised_lock_limit(now, bytes, false);
  if (!own) return own.error();
  limit = {.rlim_cur = own->soft, .rlim_max = own->hard};
  if (::setrlimit(RLIMIT_MEMLOCK, &limit) < 0) return errno_error("raise RLIMIT_MEMLOCK", errno);
  return {};
}

}  // namespace fuse
