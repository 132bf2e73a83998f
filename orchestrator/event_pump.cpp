#include "orchestrator/event_pump.h"

#include <utility>

namespace fuse {

namespace {
// A reader that is further behind than this is waited for.
constexpr std::size_t most_waiting = 1000;
}  // namespace

EventPump::EventPump(EnvironmentApi& environments, std::string id, EventQuery query)
    : thread_([this, &environments, id = std::move(id), query = std::move(query)](
                  const std::stop_token& stop) { run(environments, id, query, stop); }) {}

EventPump::~EventPump() {
  thread_.request_stop();
}

void EventPump::run(EnvironmentApi& environments, const std::string& id, const EventQuery& query,
                    const std::stop_token& stop) {
  const auto done = environments.events(
      id, query,
      [&](const EnvironmentEvent& event) {
        std::unique_lock lock(mutex_);
        if (!changed_.wait(lock, stop, [this] { return waiting_.size() < most_waiting; })) {
          return false;
        }
        waiting_.push_back(event);
        changed_.notify_all();
        return true;
      },
      stop);
  const std::scoped_lock lock(mutex_);
  over_ = true;
  if (!done) problem_ = done.error();
  changed_.notify_all();
}

EventPump::Taken EventPump::take(std::chrono::milliseconds most, const std::stop_token& stop) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, stop, most, [this] { return !waiting_.empty() || over_; });
  if (waiting_.empty()) {
    return {.kind = over_ ? Taken::Kind::over : Taken::Kind::nothing_yet};
  }
  Taken taken{.kind = Taken::Kind::event, .event = std::move(waiting_.front())};
  waiting_.pop_front();
  changed_.notify_all();
  return taken;
}

std::optional<Error> EventPump::first_problem() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return !waiting_.empty() || over_; });
  return waiting_.empty() ? problem_ : std::nullopt;
}

}  // namespace fuse
