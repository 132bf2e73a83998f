#pragma once

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <thread>

namespace fuse {

// Requests a stop once its time is over, unless it is dropped before.
class Deadline {
 public:
  explicit Deadline(std::chrono::milliseconds time)
      : thread_([this, time](const std::stop_token& dropped) {
          std::unique_lock lock(mutex_);
          never_.wait_for(lock, dropped, time, [] { return false; });
          if (!dropped.stop_requested()) over_.request_stop();
        }) {}

  [[nodiscard]] std::stop_token token() const { return over_.get_token(); }

 private:
  std::stop_source over_;
  std::mutex mutex_;
  std::condition_variable_any never_;
  std::jthread thread_;  // last: it uses all of the above
};

}  // namespace fuse
