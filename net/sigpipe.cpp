#include "net/sigpipe.h"

#include <ctime>

namespace fuse {

namespace {

sigset_t only_sigpipe() {
  sigset_t set{};
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGPIPE);
  return set;
}

}  // namespace

SigpipeGuard::SigpipeGuard() {
  sigset_t pending{};
  ::sigpending(&pending);
  was_pending_ = ::sigismember(&pending, SIGPIPE) == 1;
  const sigset_t set = only_sigpipe();
  ::pthread_sigmask(SIG_BLOCK, &set, &before_);
}

SigpipeGuard::~SigpipeGuard() {
  if (!was_pending_) {
    const sigset_t set = only_sigpipe();
    const timespec at_once{};
    ::sigtimedwait(&set, nullptr, &at_once);
  }
  ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

}  // namespace fuse
