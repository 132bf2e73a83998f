#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <thread>

#include "base/clock.h"
#include "base/fd.h"
#include "base/result.h"
#include "guest/channel/client.h"
#include "guest/channel/frame.h"
#include "guest/channel/messages.h"
#include "guest/channel/sync.h"

namespace fuse {

// The host's multiplexer: streams over one connection.  A thread of its own reads
// always, whatever callers do, and writes what they have queued; so neither side
// can block the other for good.  Private to this folder.
class HostLink {
 public:
  // One stream as the link keeps it.  Guarded by the link's mutex.
  struct Stream {
    std::uint32_t id = 0;
    std::deque<Frame> inbox{};   // data in order of arrival
    std::optional<Frame> end{};  // the close or error that ended it
    std::uint32_t send_credit = stream_credit;
    std::uint32_t unread = 0;    // bytes that arrived and were not granted again
    std::uint32_t to_grant = 0;  // of these, those that were read
  };

  static Result<std::shared_ptr<HostLink>> connect(Fd socket, const GuestLimits& limits,
                                                   std::stop_token stop);
  HostLink(Fd socket, Fd wake, const GuestLimits& limits);
  HostLink(const HostLink&) = delete;
  HostLink& operator=(const HostLink&) = delete;
  ~HostLink();

  [[nodiscard]] const GuestHello& hello() const { return hello_; }
  [[nodiscard]] bool alive() const;
  void close();

 private:
  friend class HostStream;
  enum class Phase { syncing, greeting, ready };

  Result<void> wait_for_hello(std::stop_token stop);
  void run();
  bool serve_once();
  [[nodiscard]] int poll_timeout(SteadyTime now) const;
  void check_silence(SteadyTime now);
  void receive();
  void take(SyncScanner::Piece piece);
  void decode();
  void handle(Frame frame);
  void handle_on_stream(Frame frame);
  void send_queued();
  void queue(const Frame& frame);
  void wake() const;
  void die(Error why);

  const GuestLimits limits_;
  const Fd socket_;
  const Fd wake_;
  const std::string nonce_;

  mutable std::mutex mutex_{};
  std::condition_variable_any changed_{};
  std::map<std::uint32_t, std::shared_ptr<Stream>> streams_{};
  std::uint32_t next_stream_ = 1;
  std::string out_{};
  std::optional<Error> death_{};
  Phase phase_ = Phase::syncing;
  GuestHello hello_{};  // constant once ready
  SteadyTime heard_{};
  std::optional<SteadyTime> asked_{};

  // The thread's own.
  SyncScanner scanner_{};
  FrameDecoder decoder_{};

  std::mutex joining_{};
  std::thread thread_{};
};

// A stream of a link, from opening to its end.  Dropping it cancels what goes on
// in the guest.  Private to this folder.
class HostStream {
 public:
  // Opens a stream for the operation; what of its text does not fit one frame is
  // sent by pump().
  static Result<HostStream> open(std::shared_ptr<HostLink> link, const Operation& operation);
  HostStream(HostStream&&) = default;
  HostStream& operator=(HostStream&&) = delete;
  HostStream(const HostStream&) = delete;
  HostStream& operator=(const HostStream&) = delete;
  ~HostStream();

  // Sends the rest of the operation, then as much of `bytes` as there is credit
  // for, taking it off, and `end` behind the last of it when asked.  Returns
  // whether all is out.
  enum class Sent { all, some };
  Sent send(std::uint8_t pipe, std::string_view& bytes, bool end);
  // Waits until there is what is wanted, the stream has ended or the connection is
  // dead, which is an error; `unavailable` when stopped before.
  enum class Want { frame, credit, either };
  Result<void> wait(Want want, std::stop_token stop);
  [[nodiscard]] bool ended() const;
  // The next data frame, if one is there, and its credit granted again.
  std::optional<Frame> read();
  // Once everything was read: the result's text, or the error that ended it.
  std::optional<Result<std::string>> result();
  void cancel();

 private:
  HostStream(std::shared_ptr<HostLink> link, std::shared_ptr<HostLink::Stream> stream,
             std::string rest);
  Sent send_locked(std::uint8_t pipe, std::string_view& bytes, bool end);

  std::shared_ptr<HostLink> link_;
  std::shared_ptr<HostLink::Stream> stream_;
  std::string operation_rest_;
};

}  // namespace fuse
