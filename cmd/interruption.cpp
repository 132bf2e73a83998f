#include "cmd/interruption.h"

#include <csignal>

namespace fuse::cmd {

Interruption::Interruption(Context& context) {
  watch_ = context.watch_signals({SIGINT, SIGTERM, SIGHUP}, [this](int number) { take(number); });
}

void Interruption::on_signal(std::function<bool(int number)> handler) {
  const std::scoped_lock lock(mutex_);
  handler_ = std::move(handler);
}

void Interruption::take(int number) {
  {
    const std::scoped_lock lock(mutex_);
    if (handler_ && !handler_(number)) return;
  }
  int none = 0;
  number_.compare_exchange_strong(none, number);
  stop_.request_stop();
}

void Interruption::output_closed() {
  int none = 0;
  number_.compare_exchange_strong(none, SIGPIPE);
  stop_.request_stop();
}

}  // namespace fuse::cmd
