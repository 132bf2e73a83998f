#include "guest/server_link.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/text.h"

namespace fuse {

namespace {

constexpr std::size_t most_streams = 128;
constexpr std::uint32_t grant_size = stream_credit / 4;

}  // namespace

void ServerStream::send(std::uint8_t pipe, std::string_view bytes, bool end) {
  assert(bytes.size() <= credit_);
  if (over_) return;
  credit_ -= static_cast<std::uint32_t>(bytes.size());
  do {
    const std::string_view piece = bytes.substr(0, most_frame_payload);
    bytes.remove_prefix(piece.size());
    const bool last = end && bytes.empty();
    link_.queue({.type = FrameType::data,
                 .flags = static_cast<std::uint8_t>(last ? pipe | flag_end : pipe),
                 .stream = id_,
                 .payload = std::string(piece)});
  } while (!bytes.empty());
}

void ServerStream::grant(std::size_t bytes) {
  to_grant_ += static_cast<std::uint32_t>(bytes);
  if (over_ || to_grant_ < grant_size) return;
  link_.queue({.type = FrameType::window, .stream = id_, .payload = u32_payload(to_grant_)});
  received_ -= std::min(received_, std::exchange(to_grant_, 0));
}

void ServerStream::close(std::string_view result) {
  finish(FrameType::close, std::string(result));
}

void ServerStream::fail(const Error& error) {
  finish(FrameType::error, error_text(error));
}

void ServerStream::finish(FrameType type, std::string text) {
  if (std::exchange(over_, true)) return;
  link_.queue({.type = type, .stream = id_, .payload = std::move(text)});
  link_.drop(id_);
}

ServerLink::ServerLink(EventLoop& loop, std::function<std::string()> hello, Opener opener,
                       std::function<void()> flush)
    : loop_(loop), hello_(std::move(hello)), opener_(std::move(opener)), flush_(std::move(flush)) {}

ServerLink::~ServerLink() = default;

void ServerLink::receive(std::string_view bytes) {
  scanner_.feed(bytes);
  while (auto piece = scanner_.next()) {
    if (piece->nonce) {
      reset();
      if (piece->nonce->empty()) continue;
      synced_ = true;
      out_ = sync_message(*piece->nonce);
      queue({.type = FrameType::hello, .payload = hello_()});
    } else if (synced_) {
      decoder_.feed(piece->bytes);
      decode();
    }
  }
}

void ServerLink::decode() {
  while (synced_) {
    const auto frame = decoder_.next();
    if (!frame) {
      // Whoever speaks so is not at the beginning of a connection, or not a host
      // of ours: only the next sync mark is listened to.
      reset();
      announce_restart();
      return;
    }
    if (!*frame) return;
    handle(**frame);
  }
}

void ServerLink::reset() {
  synced_ = false;
  decoder_.reset();
  out_.clear();
  sent_ = 0;
  // Handlers end processes and remove files; none of them may find a stream of
  // another connection meanwhile.
  const auto dropped = std::exchange(streams_, {});
  for (const auto& [id, stream] : dropped) stream->over_ = true;
}

void ServerLink::announce_restart() {
  out_ += sync_message(restart_nonce());
  flush_();
}

void ServerLink::mark_sent(std::size_t bytes) {
  sent_ += bytes;
  if (sent_ == out_.size() || sent_ > (1U << 20U)) {
    out_.erase(0, sent_);
    sent_ = 0;
  }
}

void ServerLink::queue(const Frame& frame) {
  append_frame(out_, frame);
  flush_();
}

void ServerLink::handle(const Frame& frame) {
  switch (frame.type) {
    case FrameType::open:
      return open(frame);
    case FrameType::ping:
      if ((frame.flags & flag_pong) == 0) {
        queue({.type = FrameType::ping, .flags = flag_pong, .payload = {}});
      }
      return;
    default:
      break;
  }
  const auto found = streams_.find(frame.stream);
  // What the host sent before it learnt of a stream's end.
  if (found == streams_.end() || found->second->over_) return;
  ServerStream& stream = *found->second;
  if (frame.type == FrameType::data) {
    handle_data(stream, frame);
  } else if (frame.type == FrameType::window) {
    const auto more = parse_u32_payload(frame.payload);
    if (!more || *more > stream_credit - std::min(stream.credit_, stream_credit)) {
      return stream.fail({ErrorCode::invalid_argument, "more credit than there can be"});
    }
    stream.credit_ += *more;
    if (stream.handler_) stream.handler_->on_credit();
  } else {
    stream.over_ = true;
    drop(frame.stream);
  }
}

void ServerLink::open(const Frame& frame) {
  if (streams_.contains(frame.stream)) return;
  auto& stream = streams_[frame.stream];
  stream = std::make_unique<ServerStream>(*this, frame.stream);
  if (streams_.size() > most_streams) {
    return stream->fail({ErrorCode::unavailable, "too many operations at once"});
  }
  stream->operation_text_ = frame.payload;
  if ((frame.flags & flag_end) != 0) begin(*stream);
}

void ServerLink::begin(ServerStream& stream) {
  auto operation = parse_operation(*std::exchange(stream.operation_text_, std::nullopt));
  if (!operation) return stream.fail(operation.error());
  auto handler = opener_(*std::move(operation), stream);
  if (!stream.over_) stream.handler_ = std::move(handler);
}

void ServerLink::handle_data(ServerStream& stream, const Frame& frame) {
  if (frame.payload.size() > stream_credit - stream.received_) {
    return stream.fail({ErrorCode::invalid_argument, "more data than was granted"});
  }
  stream.received_ += static_cast<std::uint32_t>(frame.payload.size());
  const bool end = (frame.flags & flag_end) != 0;
  if (!stream.operation_text_) {
    const auto pipe = static_cast<std::uint8_t>(frame.flags & pipe_mask);
    if (stream.handler_) stream.handler_->on_data(pipe, frame.payload, end);
    return;
  }
  *stream.operation_text_ += frame.payload;
  if (stream.operation_text_->size() > most_operation_text) {
    return stream.fail({ErrorCode::payload_too_large, "an operation beyond the channel's limit"});
  }
  stream.grant(frame.payload.size());
  if (end) begin(stream);
}

// Later, since its handler may be the caller; unless the link or the stream is
// gone by then.
void ServerLink::drop(std::uint32_t id) {
  loop_.post([this, id, alive = std::weak_ptr<int>(alive_)] {
    if (alive.expired()) return;
    const auto found = streams_.find(id);
    if (found == streams_.end() || !found->second->over_) return;
    const auto stream = std::move(found->second);
    streams_.erase(found);
  });
}

}  // namespace fuse
