#include "orchestrator/wakeups.h"

#include <utility>

namespace fuse {

Wakeups::Subscription::Subscription(Wakeups& wakeups, std::string uid) : wakeups_(wakeups) {
  const std::scoped_lock lock(wakeups_.mutex_);
  at_ = wakeups_.waiters_.insert(wakeups_.waiters_.end(), Waiter{.uid = std::move(uid)});
}

Wakeups::Subscription::~Subscription() {
  const std::scoped_lock lock(wakeups_.mutex_);
  wakeups_.waiters_.erase(at_);
}

void Wakeups::Subscription::wait(std::chrono::milliseconds most, const std::stop_token& stop) {
  std::unique_lock lock(wakeups_.mutex_);
  wakeups_.woken_.wait_for(lock, stop, most, [this] { return at_->woken; });
  at_->woken = false;
}

void Wakeups::notify(const std::set<std::string>& uids) {
  {
    const std::scoped_lock lock(mutex_);
    for (Waiter& waiter : waiters_) {
      if (waiter.uid.empty() || uids.count(waiter.uid) != 0) waiter.woken = true;
    }
  }
  woken_.notify_all();
}

void Wakeups::notify_all() {
  notify({});
}

}  // namespace fuse
