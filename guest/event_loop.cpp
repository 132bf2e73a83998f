#include "guest/event_loop.h"

#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace fuse {

void EventLoop::Registration::set_events(std::uint32_t events) {
  if (loop_ == nullptr) return;
  const auto found = loop_->watched_.find(id_);
  if (found == loop_->watched_.end() || found->second.events == events) return;
  found->second.events = events;
  epoll_event event{.events = events, .data = {.u64 = id_}};
  ::epoll_ctl(loop_->epoll_.get(), EPOLL_CTL_MOD, found->second.fd, &event);
}

void EventLoop::Registration::reset() {
  EventLoop* const loop = std::exchange(loop_, nullptr);
  if (loop == nullptr) return;
  loop->timers_.erase(id_);
  const auto found = loop->watched_.find(id_);
  if (found == loop->watched_.end()) return;
  ::epoll_ctl(loop->epoll_.get(), EPOLL_CTL_DEL, found->second.fd, nullptr);
  loop->watched_.erase(found);
}

Result<std::unique_ptr<EventLoop>> EventLoop::create() {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return errno_error("create an epoll descriptor", errno);
  return std::make_unique<EventLoop>(std::move(epoll));
}

Result<EventLoop::Registration> EventLoop::watch(int fd, std::uint32_t events,
                                                 std::function<void(std::uint32_t)> handler) {
  const std::uint64_t id = next_id_++;
  epoll_event event{.events = events, .data = {.u64 = id}};
  if (::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) < 0) {
    return errno_error("watch a descriptor", errno);
  }
  using Handler = std::function<void(std::uint32_t)>;
  watched_[id] = {
      .fd = fd, .events = events, .handler = std::make_shared<Handler>(std::move(handler))};
  return Registration(*this, id);
}

EventLoop::Registration EventLoop::after(std::chrono::nanoseconds time,
                                         std::function<void()> handler) {
  const std::uint64_t id = next_id_++;
  timers_[id] = {.due = std::chrono::steady_clock::now() + time, .handler = std::move(handler)};
  return {*this, id};
}

int EventLoop::poll_timeout() const {
  if (!posted_.empty()) return 0;
  if (timers_.empty()) return -1;
  const auto first =
      std::ranges::min_element(timers_, {}, [](const auto& entry) { return entry.second.due; });
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(first->second.due -
                                                                 std::chrono::steady_clock::now());
  return static_cast<int>(std::clamp<std::int64_t>(left.count(), 0, 60'000));
}

void EventLoop::run_due_timers() {
  const SteadyTime now = std::chrono::steady_clock::now();
  std::vector<std::uint64_t> due;
  for (const auto& [id, timer] : timers_) {
    if (timer.due <= now) due.push_back(id);
  }
  for (const std::uint64_t id : due) {
    const auto found = timers_.find(id);
    if (found == timers_.end()) continue;
    const std::function<void()> handler = std::move(found->second.handler);
    timers_.erase(found);
    handler();
  }
}

void EventLoop::run_posted() {
  while (!posted_.empty()) {
    for (const auto& task : std::exchange(posted_, {})) task();
  }
}

Result<void> EventLoop::run() {
  std::array<epoll_event, 64> events{};
  while (!stopped_) {
    const int ready =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), poll_timeout());
    if (ready < 0 && errno != EINTR) return errno_error("wait for events", errno);
    for (int i = 0; i < ready; ++i) {
      const epoll_event& event = events[static_cast<std::size_t>(i)];
      const auto found = watched_.find(event.data.u64);
      if (found == watched_.end()) continue;
      const auto handler = found->second.handler;
      (*handler)(event.events);
    }
    run_due_timers();
    run_posted();
  }
  return {};
}

}  // namespace fuse
