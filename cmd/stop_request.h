#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>

namespace fuse::cmd {

// Why a process ends, once it is to.
class StopRequest {
 public:
  void ask(const std::string& why) {
    {
      const std::scoped_lock lock(mutex_);
      if (why_.empty()) why_ = why;
    }
    changed_.notify_all();
  }
  // The reason, when there is one.
  std::string wait() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return !why_.empty(); });
    return why_;
  }
  // Waits up to `time`; the reason, or "" while there is none.
  std::string wait(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, time, [this] { return !why_.empty(); });
    return why_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::string why_{};
};

}  // namespace fuse::cmd
