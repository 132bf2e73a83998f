#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <stop_token>

#include "net/socket_stream.h"

namespace fuse {

// The connections of a server and what each is doing, so that a stop reaches all
// of them at once and in the right way.
class LiveConnections {
 public:
  // One connection's place in the list, held by its thread.  The answers are false
  // once the server stops.
  class Entry {
   public:
    Entry(LiveConnections& all, std::uint64_t id) : all_(all), id_(id) {}
    Entry(const Entry&) = delete;
    Entry& operator=(const Entry&) = delete;
    ~Entry() { all_.leave(id_); }

    // Waits for a request: closed when the server stops.
    bool idle() { return all_.set_phase(id_, Phase::idle); }
    // Has a request in hand: may finish it.  A fresh stop source for it.
    std::stop_source busy() { return all_.start_request(id_); }
    // Belongs to another protocol: closed when the server stops.
    bool upgraded() { return all_.set_phase(id_, Phase::upgraded); }
    [[nodiscard]] bool stopping() const { return all_.is_stopping(); }

   private:
    LiveConnections& all_;
    std::uint64_t id_;
  };

  // Nothing once the server stops.
  std::unique_ptr<Entry> enter(SocketStream& stream);
  // Whether there was one to close.
  bool close_one_idle();
  // Asks all to end, waits up to `grace` for them, then closes the rest.
  void stop(std::chrono::milliseconds grace);

 private:
  enum class Phase { idle, busy, upgraded };
  struct Live {
    SocketStream* stream = nullptr;
    Phase phase = Phase::busy;
    std::stop_source stop{};
  };

  bool set_phase(std::uint64_t id, Phase phase);
  std::stop_source start_request(std::uint64_t id);
  bool is_stopping() const;
  void leave(std::uint64_t id);

  mutable std::mutex mutex_;
  std::condition_variable left_;
  std::map<std::uint64_t, Live> live_{};
  std::uint64_t next_id_ = 0;
  bool stopping_ = false;
};

}  // namespace fuse
