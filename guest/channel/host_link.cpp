#include "guest/channel/host_link.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <utility>

#include "base/text.h"

namespace fuse {

namespace {

constexpr std::size_t read_size = 64U << 10U;
constexpr std::size_t most_unsent_for_pong = 1U << 20U;
// Frames without bytes cost no credit: a guest must not fill our memory with them.
constexpr std::size_t most_frames_unread = stream_credit + 16;

Error lost(std::string_view why) {
  return {ErrorCode::unreachable, cat("the guest's channel: ", why)};
}

int milliseconds_until(SteadyTime then, SteadyTime now) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(then - now).count();
  return static_cast<int>(std::clamp<std::int64_t>(left, 0, 60'000));
}

}  // namespace

HostLink::HostLink(Fd socket, Fd wake, const GuestLimits& limits)
    : limits_(limits),
      socket_(std::move(socket)),
      wake_(std::move(wake)),
      nonce_(new_sync_nonce()) {}

HostLink::~HostLink() {
  close();
}

Result<std::shared_ptr<HostLink>> HostLink::connect(Fd socket, const GuestLimits& limits,
                                                    std::stop_token stop) {
  Fd wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK));
  if (!wake.valid()) return errno_error("create an event descriptor", errno);
  const int flags = ::fcntl(socket.get(), F_GETFL);
  if (flags < 0 || ::fcntl(socket.get(), F_SETFL, flags | O_NONBLOCK) < 0) {
    return errno_error("use the guest's channel", errno);
  }
  auto link = std::make_shared<HostLink>(std::move(socket), std::move(wake), limits);
  link->out_ = sync_message(link->nonce_);
  link->heard_ = std::chrono::steady_clock::now();
  link->thread_ = std::thread([raw = link.get()] { raw->run(); });
  if (auto greeted = link->wait_for_hello(std::move(stop)); !greeted) {
    link->close();
    return greeted.error();
  }
  return link;
}

Result<void> HostLink::wait_for_hello(std::stop_token stop) {
  std::unique_lock lock(mutex_);
  const auto settled = [this] { return phase_ == Phase::ready || death_; };
  const bool in_time = changed_.wait_for(lock, stop, limits_.hello, settled);
  if (death_) return *death_;
  if (in_time) return {};
  if (stop.stop_requested()) {
    return Error{ErrorCode::unavailable, "interrupted while waiting for the guest's hello"};
  }
  return lost(cat("no hello within ", limits_.hello.count(),
                  " ms: nothing listens in the guest yet, or the channel is held by another "
                  "process"));
}

bool HostLink::alive() const {
  const std::scoped_lock lock(mutex_);
  return phase_ == Phase::ready && !death_;
}

void HostLink::close() {
  {
    const std::scoped_lock lock(mutex_);
    die(lost("the connection was closed"));
  }
  const std::scoped_lock lock(joining_);
  if (thread_.joinable()) thread_.join();
}

// From here on: with the mutex held, but for run() and serve_once().

void HostLink::die(Error why) {
  if (!death_) death_ = std::move(why);
  changed_.notify_all();
  wake();
}

void HostLink::wake() const {
  const std::uint64_t one = 1;
  // The counter can only be full of wake-ups that were not seen yet.
  [[maybe_unused]] const ssize_t wrote = ::write(wake_.get(), &one, sizeof one);
}

void HostLink::run() {
  while (serve_once()) {
  }
  // The other side learns of it at once, however long this object is kept.
  ::shutdown(socket_.get(), SHUT_RDWR);
}

// Polls once and does what can be done; false when the connection is over.
bool HostLink::serve_once() {
  std::array<pollfd, 2> events{{{.fd = socket_.get(), .events = POLLIN, .revents = 0},
                                {.fd = wake_.get(), .events = POLLIN, .revents = 0}}};
  int timeout = -1;
  {
    const std::scoped_lock lock(mutex_);
    if (death_) return false;
    if (!out_.empty()) events[0].events = POLLIN | POLLOUT;
    timeout = poll_timeout(std::chrono::steady_clock::now());
  }
  if (::poll(events.data(), events.size(), timeout) < 0 && errno != EINTR) {
    const std::scoped_lock lock(mutex_);
    die(errno_error("poll the guest's channel", errno));
    return false;
  }
  const std::scoped_lock lock(mutex_);
  std::uint64_t count = 0;
  if ((events[1].revents & POLLIN) != 0) (void)!::read(wake_.get(), &count, sizeof count);
  if ((events[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0) receive();
  if (!death_) send_queued();
  check_silence(std::chrono::steady_clock::now());
  return !death_;
}

int HostLink::poll_timeout(SteadyTime now) const {
  if (streams_.empty()) return -1;
  return milliseconds_until(asked_.value_or(heard_) + limits_.silence, now);
}

void HostLink::check_silence(SteadyTime now) {
  if (streams_.empty() || death_) return;
  if (asked_ && now - *asked_ >= limits_.silence) {
    die(lost("the guest does not answer any more"));
  } else if (!asked_ && now - heard_ >= limits_.silence) {
    asked_ = now;
    queue({.type = FrameType::ping});
    send_queued();
  }
}

void HostLink::receive() {
  std::array<char, read_size> buffer;  // NOLINT(*-member-init): written by recv
  const ssize_t got = ::recv(socket_.get(), buffer.data(), buffer.size(), 0);
  if (got == 0) return die(lost("the connection ended"));
  if (got < 0) {
    if (errno == EAGAIN || errno == EINTR) return;
    return die(lost(errno_error("read", errno).message));
  }
  scanner_.feed({buffer.data(), static_cast<std::size_t>(got)});
  while (auto piece = scanner_.next()) {
    take(*std::move(piece));
    if (death_) return;
  }
}

void HostLink::take(SyncScanner::Piece piece) {
  if (piece.nonce) {
    if (phase_ == Phase::syncing) {
      if (*piece.nonce == nonce_) phase_ = Phase::greeting;
    } else {
      die(lost("the guest's agent began anew"));
    }
    return;
  }
  if (phase_ == Phase::syncing) return;
  heard_ = std::chrono::steady_clock::now();
  asked_.reset();
  decoder_.feed(piece.bytes);
  decode();
}

void HostLink::decode() {
  while (!death_) {
    auto frame = decoder_.next();
    if (!frame) return die(lost(frame.error().message));
    if (!*frame) return;
    handle(**std::move(frame));
  }
}

void HostLink::handle(Frame frame) {
  if (phase_ == Phase::greeting) {
    if (frame.type != FrameType::hello) return die(lost("the guest did not begin with a hello"));
    auto hello = parse_hello(frame.payload);
    if (!hello) return die(lost(cat("a hello that cannot be read: ", hello.error().message)));
    if (hello->protocol != guest_protocol) {
      return die(lost(
          cat("the guest's agent speaks protocol ", hello->protocol, ", not ", guest_protocol)));
    }
    hello_ = *std::move(hello);
    phase_ = Phase::ready;
    changed_.notify_all();
    return;
  }
  switch (frame.type) {
    case FrameType::ping:
      // One that asks and does not read gets no more answers.
      if ((frame.flags & flag_pong) == 0 && out_.size() < most_unsent_for_pong) {
        queue({.type = FrameType::ping, .flags = flag_pong, .payload = {}});
      }
      return;
    case FrameType::hello:
    case FrameType::open:
      return die(lost("a frame that a guest does not send"));
    default:
      return handle_on_stream(std::move(frame));
  }
}

void HostLink::handle_on_stream(Frame frame) {
  const auto found = streams_.find(frame.stream);
  // What was under way when a stream was cancelled arrives late.
  if (found == streams_.end()) return;
  Stream& stream = *found->second;
  if (frame.type == FrameType::window) {
    const auto more = parse_u32_payload(frame.payload);
    if (!more || *more > stream_credit - std::min(stream.send_credit, stream_credit)) {
      return die(lost("the guest granted more than it may"));
    }
    stream.send_credit += *more;
  } else if (frame.type == FrameType::data) {
    if (frame.payload.size() > stream_credit - stream.unread) {
      return die(lost("the guest sent more than it was granted"));
    }
    if (stream.inbox.size() >= most_frames_unread) return die(lost("the guest floods a stream"));
    stream.unread += static_cast<std::uint32_t>(frame.payload.size());
    stream.inbox.push_back(std::move(frame));
  } else {
    stream.end = std::move(frame);
    streams_.erase(found);
  }
  changed_.notify_all();
}

void HostLink::queue(const Frame& frame) {
  append_frame(out_, frame);
}

void HostLink::send_queued() {
  while (!out_.empty()) {
    const ssize_t wrote = ::send(socket_.get(), out_.data(), out_.size(), MSG_NOSIGNAL);
    if (wrote > 0) {
      out_.erase(0, static_cast<std::size_t>(wrote));
    } else if (wrote < 0 && errno != EINTR) {
      if (errno != EAGAIN) die(lost(errno_error("write", errno).message));
      return;
    }
  }
}

}  // namespace fuse
