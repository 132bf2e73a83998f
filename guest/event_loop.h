#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"

namespace fuse {

// One thread's epoll loop: descriptors, timers and things to do later.  Handlers
// may add and drop watches and timers, their own included.  Watches and timers
// must not outlive the loop.
class EventLoop {
 public:
  // Removes its descriptor or timer from the loop when dropped.
  class Registration {
   public:
    Registration() = default;
    Registration(EventLoop& loop, std::uint64_t id) : loop_(&loop), id_(id) {}
    Registration(Registration&& other) noexcept
        : loop_(std::exchange(other.loop_, nullptr)), id_(other.id_) {}
    Registration& operator=(Registration&& other) noexcept {
      if (this != &other) {
        reset();
        loop_ = std::exchange(other.loop_, nullptr);
        id_ = other.id_;
      }
      return *this;
    }
    Registration(const Registration&) = delete;
    Registration& operator=(const Registration&) = delete;
    ~Registration() { reset(); }

    [[nodiscard]] bool active() const { return loop_ != nullptr; }
    // Which epoll events a descriptor is watched for; 0 still tells of hang-ups.
    void set_events(std::uint32_t events);
    void reset();

   private:
    EventLoop* loop_ = nullptr;
    std::uint64_t id_ = 0;
  };

  static Result<std::unique_ptr<EventLoop>> create();
  explicit EventLoop(Fd epoll) : epoll_(std::move(epoll)) {}
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;
  ~EventLoop() = default;

  // Calls the handler with the events of `fd`, which stays open until the watch
  // is dropped.
  Result<Registration> watch(int fd, std::uint32_t events,
                             std::function<void(std::uint32_t events)> handler);
  // Calls the handler once.
  Registration after(std::chrono::nanoseconds time, std::function<void()> handler);
  // Calls the task when the handlers at work have returned.
  void post(std::function<void()> task) { posted_.push_back(std::move(task)); }

  // Until stop().
  Result<void> run();
  void stop() { stopped_ = true; }

 private:
  struct Watched {
    int fd = -1;
    std::uint32_t events = 0;
    std::shared_ptr<std::function<void(std::uint32_t)>> handler{};
  };
  struct Timer {
    SteadyTime due{};
    std::function<void()> handler{};
  };

  [[nodiscard]] int poll_timeout() const;
  void run_due_timers();
  void run_posted();

  Fd epoll_;
  std::uint64_t next_id_ = 1;
  std::map<std::uint64_t, Watched> watched_{};
  std::map<std::uint64_t, Timer> timers_{};
  std::vector<std::function<void()>> posted_{};
  bool stopped_ = false;
};

}  // namespace fuse
