#include "remote/retry.h"

#include <algorithm>

namespace fuse {

namespace {

using std::chrono::milliseconds;

constexpr milliseconds shortest_pause(100);
constexpr milliseconds longest_pause(2000);

}  // namespace

void Retry::succeeded() {
  last_sign_ = clock_.steady();
  pause_ = {};
}

bool Retry::wait(const std::stop_token& stop) {
  if (clock_.steady() - last_sign_ > patience_) return false;
  pause_ = std::clamp(pause_ * 2, shortest_pause, longest_pause);
  const SteadyTime until = clock_.steady() + pause_;
  while (!stop.stop_requested() && clock_.steady() < until) clock_.sleep(shortest_pause);
  return !stop.stop_requested();
}

}  // namespace fuse
