#include <algorithm>
#include <utility>

#include "base/text.h"
#include "guest/channel/host_link.h"

namespace fuse {

namespace {

// Half a frame, so that a long operation's first frame leaves early.
constexpr std::size_t most_text_in_open = 32U << 10U;
// Credit is granted again in pieces of this size rather than with every frame.
constexpr std::uint32_t grant_size = stream_credit / 4;

}  // namespace

HostStream::HostStream(std::shared_ptr<HostLink> link, std::shared_ptr<HostLink::Stream> stream,
                       std::string rest)
    : link_(std::move(link)), stream_(std::move(stream)), operation_rest_(std::move(rest)) {}

HostStream::~HostStream() {
  cancel();
}

Result<HostStream> HostStream::open(std::shared_ptr<HostLink> link, const Operation& operation) {
  auto text = operation_text(operation);
  if (!text) return text.error();
  if (text->size() > most_operation_text) {
    return Error{ErrorCode::payload_too_large, "more than the guest's channel takes at once"};
  }
  std::string rest = text->size() > most_text_in_open ? text->substr(most_text_in_open) : "";
  text->resize(text->size() - rest.size());

  const std::scoped_lock lock(link->mutex_);
  if (link->death_) return *link->death_;
  // A connection that nobody used need not have been heard of.
  if (link->streams_.empty()) {
    link->heard_ = std::chrono::steady_clock::now();
    link->asked_.reset();
  }
  auto stream = std::make_shared<HostLink::Stream>();
  stream->id = link->next_stream_++;
  link->streams_.emplace(stream->id, stream);
  link->queue({.type = FrameType::open,
               .flags = rest.empty() ? flag_end : std::uint8_t{0},
               .stream = stream->id,
               .payload = *std::move(text)});
  link->wake();
  return HostStream(std::move(link), std::move(stream), std::move(rest));
}

HostStream::Sent HostStream::send(std::uint8_t pipe, std::string_view& bytes, bool end) {
  const std::scoped_lock lock(link_->mutex_);
  if (stream_->end || link_->death_) return Sent::some;
  if (!operation_rest_.empty()) {
    std::string_view rest = operation_rest_;
    const Sent sent = send_locked(pipe_control, rest, true);
    operation_rest_.erase(0, operation_rest_.size() - rest.size());
    if (sent == Sent::some) return Sent::some;
  }
  return send_locked(pipe, bytes, end);
}

HostStream::Sent HostStream::send_locked(std::uint8_t pipe, std::string_view& bytes, bool end) {
  bool queued = false;
  while (!bytes.empty() && stream_->send_credit > 0) {
    const std::size_t size =
        std::min({bytes.size(), std::size_t{stream_->send_credit}, most_frame_payload});
    const bool last = end && size == bytes.size();
    link_->queue({.type = FrameType::data,
                  .flags = static_cast<std::uint8_t>(last ? pipe | flag_end : pipe),
                  .stream = stream_->id,
                  .payload = std::string(bytes.substr(0, size))});
    stream_->send_credit -= static_cast<std::uint32_t>(size);
    bytes.remove_prefix(size);
    queued = true;
    if (last) end = false;
  }
  if (bytes.empty() && end && !queued) {
    link_->queue({.type = FrameType::data,
                  .flags = static_cast<std::uint8_t>(pipe | flag_end),
                  .stream = stream_->id,
                  .payload = {}});
    queued = true;
  }
  if (queued) link_->wake();
  return bytes.empty() ? Sent::all : Sent::some;
}

Result<void> HostStream::wait(Want want, std::stop_token stop) {
  std::unique_lock lock(link_->mutex_);
  const auto there = [&] {
    return (want != Want::credit && !stream_->inbox.empty()) ||
           (want != Want::frame && stream_->send_credit > 0) || stream_->end;
  };
  const bool woken =
      link_->changed_.wait(lock, stop, [&] { return there() || link_->death_.has_value(); });
  if (!woken) return Error{ErrorCode::unavailable, "interrupted"};
  // What has arrived is handed out before the connection's end is; nothing can be
  // sent any more.
  const bool readable = !stream_->inbox.empty() || stream_->end;
  if (link_->death_ && (want == Want::credit || !readable)) return *link_->death_;
  return {};
}

bool HostStream::ended() const {
  const std::scoped_lock lock(link_->mutex_);
  return stream_->end.has_value();
}

std::optional<Frame> HostStream::read() {
  const std::scoped_lock lock(link_->mutex_);
  if (stream_->inbox.empty()) return std::nullopt;
  Frame frame = std::move(stream_->inbox.front());
  stream_->inbox.pop_front();
  stream_->to_grant += static_cast<std::uint32_t>(frame.payload.size());
  if (stream_->to_grant >= grant_size && !stream_->end && !link_->death_) {
    link_->queue({.type = FrameType::window,
                  .stream = stream_->id,
                  .payload = u32_payload(stream_->to_grant)});
    stream_->unread -= std::exchange(stream_->to_grant, 0);
    link_->wake();
  }
  return frame;
}

std::optional<Result<std::string>> HostStream::result() {
  const std::scoped_lock lock(link_->mutex_);
  if (!stream_->inbox.empty() || !stream_->end) return std::nullopt;
  if (stream_->end->type == FrameType::error) return parse_error_text(stream_->end->payload);
  return Result<std::string>(stream_->end->payload);
}

void HostStream::cancel() {
  if (!link_) return;
  const std::scoped_lock lock(link_->mutex_);
  if (link_->streams_.erase(stream_->id) == 0 || link_->death_) return;
  link_->queue({.type = FrameType::close, .stream = stream_->id, .payload = {}});
  link_->wake();
}

}  // namespace fuse
