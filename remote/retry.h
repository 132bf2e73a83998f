#pragma once

#include <chrono>
#include <functional>
#include <stop_token>

#include "base/clock.h"
#include "base/result.h"

namespace fuse {

// When to take up a stream that broke: after pauses that grow while nothing
// comes, until nothing came for `patience`.
class Retry {
 public:
  Retry(Clock& clock, std::chrono::milliseconds patience)
      : clock_(clock), patience_(patience), last_sign_(clock.steady()) {}

  // Something came: the server lives.
  void succeeded();
  // Waits for the next attempt.  False when it is time to give up or `stop` is
  // requested.
  [[nodiscard]] bool wait(const std::stop_token& stop);

 private:
  Clock& clock_;
  std::chrono::milliseconds patience_;
  SteadyTime last_sign_;
  std::chrono::milliseconds pause_{};
};

}  // namespace fuse
