#pragma once

#include <chrono>
#include <condition_variable>
#include <list>
#include <mutex>
#include <set>
#include <stop_token>
#include <string>

namespace fuse {

// Wakes threads that wait for something to happen to an environment.  Only a
// hint within this process: a waiter looks into the database, and at times also
// without having been woken.
class Wakeups {
  struct Waiter {
    std::string uid{};  // empty: any
    bool woken = false;
  };

 public:
  // Hears of everything from its construction on.  For one thread.
  class Subscription {
   public:
    Subscription(Wakeups& wakeups, std::string uid);
    ~Subscription();
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;
    // Returns at the next wake-up, at once when there was one since the last
    // call; or after `most`, or when asked to stop.
    void wait(std::chrono::milliseconds most, const std::stop_token& stop);

   private:
    Wakeups& wakeups_;
    std::list<Waiter>::iterator at_;
  };

  void notify(const std::set<std::string>& uids);
  // Wakes those who wait for anything.
  void notify_all();

 private:
  std::mutex mutex_;
  std::condition_variable_any woken_;
  std::list<Waiter> waiters_;  // by mutex_
};

}  // namespace fuse
