#include "net/hangup_watch.h"

#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <utility>

namespace fuse {

Result<std::unique_ptr<HangupWatch>> HangupWatch::start() {
  Fd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll.valid()) return errno_error("make an epoll descriptor", errno);
  Fd wake(::eventfd(0, EFD_CLOEXEC));
  if (!wake.valid()) return errno_error("make an event descriptor", errno);
  epoll_event event{};
  event.events = EPOLLIN;
  if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, wake.get(), &event) < 0) {
    return errno_error("watch an event descriptor", errno);
  }
  return std::unique_ptr<HangupWatch>(new HangupWatch(std::move(epoll), std::move(wake)));
}

HangupWatch::HangupWatch(Fd epoll, Fd wake)
    : epoll_(std::move(epoll)), wake_(std::move(wake)), thread_([this] { run(); }) {}

HangupWatch::~HangupWatch() {
  const std::uint64_t one = 1;
  while (::write(wake_.get(), &one, sizeof one) < 0 && errno == EINTR) {
  }
  thread_.join();
}

HangupWatch::Guard HangupWatch::watch(int fd, std::stop_source stop) {
  std::uint64_t id = 0;
  {
    const std::scoped_lock lock(mutex_);
    id = next_id_++;
    watched_.emplace(id, std::move(stop));
  }
  epoll_event event{};
  event.events = EPOLLRDHUP | EPOLLONESHOT;  // errors and full hang-ups come unasked
  event.data.u64 = id;
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
  return {*this, fd, id};
}

void HangupWatch::forget(int fd, std::uint64_t id) {
  ::epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
  const std::scoped_lock lock(mutex_);
  watched_.erase(id);
}

void HangupWatch::hung_up(std::uint64_t id) {
  std::stop_source stop(std::nostopstate);
  {
    const std::scoped_lock lock(mutex_);
    const auto found = watched_.find(id);
    if (found == watched_.end()) return;
    stop = found->second;
  }
  stop.request_stop();
}

void HangupWatch::run() {
  std::array<epoll_event, 64> events{};
  while (true) {
    const int count =
        ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < count; ++i) {
      const std::uint64_t id = events[static_cast<std::size_t>(i)].data.u64;
      if (id == 0) return;
      hung_up(id);
    }
  }
}

}  // namespace fuse
