#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "guest/channel/frame.h"
#include "guest/channel/messages.h"
#include "guest/channel/sync.h"
#include "guest/event_loop.h"

namespace fuse {

// An operation at work, fed by its stream.  Dropped when the stream is over: with
// its result, cancelled by the host or with the connection; then it ends what it
// has started.
class StreamHandler {
 public:
  virtual ~StreamHandler() = default;
  // Data from the host.  What it holds is given back as credit by Stream::grant()
  // once it is used up; `end`: no more follows on this pipe.
  virtual void on_data(std::uint8_t pipe, std::string_view bytes, bool end) = 0;
  // There is credit again.
  virtual void on_credit() = 0;
};

class ServerLink;

// The guest's side of one stream.
class ServerStream {
 public:
  ServerStream(ServerLink& link, std::uint32_t id) : link_(link), id_(id) {}
  // How many bytes may be sent.
  [[nodiscard]] std::size_t credit() const { return credit_; }
  // Sends at most credit() bytes.
  void send(std::uint8_t pipe, std::string_view bytes, bool end = false);
  void grant(std::size_t bytes);
  // Ends the stream; its handler is dropped once it has returned.  Only the first
  // of these counts.
  void close(std::string_view result);
  void fail(const Error& error);

 private:
  friend class ServerLink;
  void finish(FrameType type, std::string text);

  ServerLink& link_;
  std::uint32_t id_;
  std::uint32_t credit_ = stream_credit;
  std::uint32_t to_grant_ = 0;
  std::uint32_t received_ = 0;  // since opening or the last grant: not granted again
  bool over_ = false;
  std::optional<std::string> operation_text_{};  // while it is still arriving
  std::unique_ptr<StreamHandler> handler_{};
};

// The guest's multiplexer, from bytes to handlers and back.  It owns no
// descriptor: a port feeds it and takes what it has to send.
class ServerLink {
 public:
  // Begins an operation; nothing when it answered at once through the stream.
  using Opener = std::function<std::unique_ptr<StreamHandler>(Operation, ServerStream&)>;

  // `hello` makes the text of a hello; `flush` is called when there is something
  // to send.
  ServerLink(EventLoop& loop, std::function<std::string()> hello, Opener opener,
             std::function<void()> flush);
  ServerLink(const ServerLink&) = delete;
  ServerLink& operator=(const ServerLink&) = delete;
  ~ServerLink();

  // Bytes from the host.
  void receive(std::string_view bytes);
  // The connection is gone: all streams end, and nothing is left to be sent.
  void reset();
  // Tells a host that holds an older connection that it is over.
  void announce_restart();
  [[nodiscard]] std::string_view unsent() const { return std::string_view(out_).substr(sent_); }
  void mark_sent(std::size_t bytes);

 private:
  friend class ServerStream;
  void decode();
  void handle(const Frame& frame);
  void open(const Frame& frame);
  void begin(ServerStream& stream);
  void handle_data(ServerStream& stream, const Frame& frame);
  void drop(std::uint32_t id);
  void queue(const Frame& frame);

  EventLoop& loop_;
  std::function<std::string()> hello_;
  Opener opener_;
  std::function<void()> flush_;
  SyncScanner scanner_{};
  FrameDecoder decoder_{};
  bool synced_ = false;
  std::string out_{};
  std::size_t sent_ = 0;
  std::map<std::uint32_t, std::unique_ptr<ServerStream>> streams_{};
  std::shared_ptr<int> alive_ = std::make_shared<int>();
};

}  // namespace fuse
