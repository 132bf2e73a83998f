#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>

#include "cmd/context.h"

namespace fuse::cmd {

// Ctrl-C, SIGTERM and SIGHUP while something is followed: they end the view,
// never the work.
class Interruption {
 public:
  explicit Interruption(Context& context);

  // Asked first, with the signal's number: false when the signal was used up.
  void on_signal(std::function<bool(int number)> handler);

  // Requested once the view is to end.
  [[nodiscard]] std::stop_token token() const { return stop_.get_token(); }
  [[nodiscard]] bool happened() const { return stop_.stop_requested(); }
  // 128 + the signal's number, or 141 after output_closed().
  [[nodiscard]] int exit_code() const { return 128 + number_.load(); }
  // Ends the view because nobody reads it any more.
  void output_closed();

 private:
  void take(int number);

  std::stop_source stop_{};
  std::atomic<int> number_{0};
  std::function<bool(int number)> handler_{};
  std::mutex mutex_{};
  std::unique_ptr<SignalWatch> watch_{};
};

}  // namespace fuse::cmd
