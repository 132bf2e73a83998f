#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>
#include <thread>

#include "base/fd.h"
#include "base/result.h"

namespace fuse {

// Notices that clients hang up while nobody reads from or writes to them: one
// thread on one epoll(7) descriptor for all.
class HangupWatch {
 public:
  static Result<std::unique_ptr<HangupWatch>> start();
  HangupWatch(const HangupWatch&) = delete;
  HangupWatch& operator=(const HangupWatch&) = delete;
  ~HangupWatch();

  class Guard {
   public:
    Guard(HangupWatch& watch, int fd, std::uint64_t id) : watch_(watch), fd_(fd), id_(id) {}
    Guard(const Guard&) = delete;
    Guard& operator=(const Guard&) = delete;
    ~Guard() { watch_.forget(fd_, id_); }

   private:
    HangupWatch& watch_;
    int fd_;
    std::uint64_t id_;
  };

  // Until the guard is dropped, requests `stop` once the other side of the socket
  // closed it.  Callbacks on the token then run in the watch's thread.
  [[nodiscard]] Guard watch(int fd, std::stop_source stop);

 private:
  HangupWatch(Fd epoll, Fd wake);
  void run();
  void forget(int fd, std::uint64_t id);
  void hung_up(std::uint64_t id);

  Fd epoll_;
  Fd wake_;
  std::mutex mutex_;
  std::map<std::uint64_t, std::stop_source> watched_{};
  std::uint64_t next_id_ = 1;  // 0 is the wake descriptor
  std::thread thread_;
};

}  // namespace fuse
