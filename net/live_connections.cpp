#include "net/live_connections.h"

#include <algorithm>
#include <vector>

namespace fuse {

std::unique_ptr<LiveConnections::Entry> LiveConnections::enter(SocketStream& stream) {
  const std::scoped_lock lock(mutex_);
  if (stopping_) return nullptr;
  const std::uint64_t id = next_id_++;
  live_.emplace(id, Live{&stream, Phase::busy, {}});
  return std::make_unique<Entry>(*this, id);
}

bool LiveConnections::close_one_idle() {
  const std::scoped_lock lock(mutex_);
  const auto found = std::ranges::find_if(
      live_, [](const auto& entry) { return entry.second.phase == Phase::idle; });
  if (found == live_.end()) return false;
  found->second.phase = Phase::busy;  // not to be counted on twice
  found->second.stream->close();
  return true;
}

void LiveConnections::stop(std::chrono::milliseconds grace) {
  std::vector<std::stop_source> stops;
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    for (auto& [id, live] : live_) {
      if (live.phase != Phase::busy) live.stream->close();
      stops.push_back(live.stop);
    }
  }
  // Their callbacks are not ours: no lock is held while they run.
  for (std::stop_source& stop : stops) stop.request_stop();
  std::unique_lock lock(mutex_);
  left_.wait_for(lock, grace, [&] { return live_.empty(); });
  for (auto& [id, live] : live_) live.stream->close();
}

bool LiveConnections::set_phase(std::uint64_t id, Phase phase) {
  const std::scoped_lock lock(mutex_);
  live_.at(id).phase = phase;
  return !stopping_;
}

std::stop_source LiveConnections::start_request(std::uint64_t id) {
  const std::scoped_lock lock(mutex_);
  Live& live = live_.at(id);
  live.phase = Phase::busy;
  live.stop = std::stop_source();
  if (stopping_) live.stop.request_stop();  // nobody has a callback on it yet
  return live.stop;
}

bool LiveConnections::is_stopping() const {
  const std::scoped_lock lock(mutex_);
  return stopping_;
}

void LiveConnections::leave(std::uint64_t id) {
  const std::scoped_lock lock(mutex_);
  live_.erase(id);
  if (live_.empty()) left_.notify_all();
}

}  // namespace fuse
