#pragma once

#include <csignal>

namespace fuse {

// Keeps SIGPIPE away from this thread while it is in a library that writes to
// sockets without MSG_NOSIGNAL; one that was raised meanwhile is taken back.
class SigpipeGuard {
 public:
  SigpipeGuard();
  SigpipeGuard(const SigpipeGuard&) = delete;
  SigpipeGuard& operator=(const SigpipeGuard&) = delete;
  ~SigpipeGuard();

 private:
  sigset_t before_{};
  bool was_pending_ = false;
};

}  // namespace fuse
