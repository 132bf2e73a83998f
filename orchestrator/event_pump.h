#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "orchestrator/api/environment_api.h"

namespace fuse {

// Reads an event stream in a thread of its own, so that its taker can do
// something else while there is no event.
class EventPump {
 public:
  EventPump(EnvironmentApi& environments, std::string id, EventQuery query);
  ~EventPump();
  EventPump(const EventPump&) = delete;
  EventPump& operator=(const EventPump&) = delete;

  struct Taken {
    enum class Kind { event, nothing_yet, over };
    Kind kind = Kind::nothing_yet;
    EnvironmentEvent event{};
  };
  // The next event; waits up to `most` for it, or until `stop`.
  Taken take(std::chrono::milliseconds most, const std::stop_token& stop);
  // Waits until there is an event or the stream is over: then why, if it failed.
  std::optional<Error> first_problem();

 private:
  void run(EnvironmentApi& environments, const std::string& id, const EventQuery& query,
           const std::stop_token& stop);

  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<EnvironmentEvent> waiting_;  // by mutex_
  bool over_ = false;                     // by mutex_
  std::optional<Error> problem_;          // by mutex_
  std::jthread thread_;
};

}  // namespace fuse
