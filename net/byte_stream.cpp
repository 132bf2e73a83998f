#include "net/byte_stream.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <limits>
#include <system_error>
#include <utility>

#include "net/socket_stream.h"

namespace fuse {

namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

std::string errno_text(int number) {
  return std::generic_category().message(number);
}

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(Fd socket) : socket_(std::move(socket)) {
    const int flags = ::fcntl(socket_.get(), F_GETFL);
    if (flags >= 0) ::fcntl(socket_.get(), F_SETFL, flags | O_NONBLOCK);
  }

  IoTry read(std::span<char> into) override {
    const ssize_t got = ::recv(socket_.get(), into.data(), into.size(), 0);
    if (got > 0) return {IoTry::Kind::moved, static_cast<std::size_t>(got), {}};
    if (got == 0) return {IoTry::Kind::end, 0, {}};
    return failed(IoTry::Kind::wait_readable);
  }

  IoTry write(std::string_view bytes) override {
    const ssize_t sent = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent >= 0) return {IoTry::Kind::moved, static_cast<std::size_t>(sent), {}};
    return failed(IoTry::Kind::wait_writable);
  }

  void shutdown_write() override { ::shutdown(socket_.get(), SHUT_WR); }
  [[nodiscard]] int fd() const override { return socket_.get(); }

 private:
  static IoTry failed(IoTry::Kind wait) {
    if (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR) return {wait, 0, {}};
    return {IoTry::Kind::broken, 0, errno_text(errno)};
  }

  Fd socket_;
};

// What is left of a patience that began at `start`.
Patience left_of(Patience patience, steady_clock::time_point start) {
  if (!patience) return patience;
  const auto spent = std::chrono::duration_cast<milliseconds>(steady_clock::now() - start);
  return std::max(*patience - spent, milliseconds(0));
}

short events_of(IoTry::Kind kind) {
  return kind == IoTry::Kind::wait_writable ? short{POLLOUT} : short{POLLIN};
}

Error broken(std::string_view why) {
  return {ErrorCode::unreachable, std::string("connection lost: ").append(why)};
}

}  // namespace

std::unique_ptr<Transport> make_plain_transport(Fd socket) {
  return std::make_unique<PlainTransport>(std::move(socket));
}

Readiness wait_for(int fd, short events, Patience patience) {
  const auto start = steady_clock::now();
  while (true) {
    const Patience left = left_of(patience, start);
    constexpr auto most = milliseconds(std::numeric_limits<int>::max());
    const int timeout = left ? static_cast<int>(std::min(*left, most).count()) : -1;
    pollfd event{.fd = fd, .events = events, .revents = 0};
    const int ready = ::poll(&event, 1, timeout);
    if (ready > 0) return Readiness::ready;
    if (ready < 0 && errno != EINTR) return Readiness::ready;
    if (ready == 0 && left && *left <= most) return Readiness::timed_out;
  }
}

SocketStream::SocketStream(std::unique_ptr<Transport> transport, std::string ahead)
    : transport_(std::move(transport)), ahead_(std::move(ahead)) {}

Result<ReadOutcome> SocketStream::read(std::span<char> into, Patience timeout) {
  if (ahead().empty()) return read_socket(into, timeout);
  const std::size_t size = std::min(into.size(), ahead().size());
  std::memcpy(into.data(), ahead().data(), size);
  skip(size);
  return ReadOutcome{ReadOutcome::Kind::bytes, size};
}

void SocketStream::skip(std::size_t size) {
  ahead_at_ += size;
  if (ahead_at_ < ahead_.size()) return;
  ahead_.clear();
  ahead_at_ = 0;
}

Result<ReadOutcome> SocketStream::fill(Patience timeout) {
  std::array<char, 16384> buffer{};
  auto got = read_socket(buffer, timeout);
  if (!got) return got;
  ahead_.erase(0, std::exchange(ahead_at_, 0));
  ahead_.append(buffer.data(), got->size);
  return got;
}

Result<ReadOutcome> SocketStream::read_socket(std::span<char> into, Patience timeout) {
  const auto start = steady_clock::now();
  while (true) {
    if (closed_) return ReadOutcome{ReadOutcome::Kind::end, 0};
    const IoTry got = transport_->read(into);
    switch (got.kind) {
      case IoTry::Kind::moved:
        return ReadOutcome{ReadOutcome::Kind::bytes, got.size};
      case IoTry::Kind::end:
        return ReadOutcome{ReadOutcome::Kind::end, 0};
      case IoTry::Kind::broken:
        if (closed_) return ReadOutcome{ReadOutcome::Kind::end, 0};
        return broken(got.why);
      case IoTry::Kind::wait_readable:
      case IoTry::Kind::wait_writable:
        break;
    }
    const Patience left = left_of(timeout, start);
    if (wait_for(poll_fd(), events_of(got.kind), left) == Readiness::timed_out) {
      return ReadOutcome{ReadOutcome::Kind::timed_out, 0};
    }
  }
}

Result<void> SocketStream::write_within(std::string_view bytes, Patience stall) {
  while (!bytes.empty()) {
    if (closed_) return broken("it was closed");
    const IoTry sent = transport_->write(bytes);
    switch (sent.kind) {
      case IoTry::Kind::moved:
        bytes.remove_prefix(sent.size);
        continue;
      case IoTry::Kind::end:
        return broken("the other side closed it");
      case IoTry::Kind::broken:
        return broken(sent.why);
      case IoTry::Kind::wait_readable:
      case IoTry::Kind::wait_writable:
        break;
    }
    if (wait_for(poll_fd(), events_of(sent.kind), stall) == Readiness::timed_out) {
      return Error{ErrorCode::unavailable, "the other side takes no more bytes"};
    }
  }
  return {};
}

void SocketStream::close() {
  closed_ = true;
  ::shutdown(poll_fd(), SHUT_RDWR);
}

void SocketStream::linger(milliseconds most) {
  transport_->shutdown_write();
  const auto start = steady_clock::now();
  std::array<char, 16384> dropped{};
  while (true) {
    const auto left = left_of(most, start);
    const auto got = read_socket(dropped, left);
    if (!got || got->kind != ReadOutcome::Kind::bytes || *left == milliseconds(0)) return;
  }
}

std::unique_ptr<ByteStream> make_socket_stream(Fd socket, std::string early) {
  return std::make_unique<SocketStream>(make_plain_transport(std::move(socket)), std::move(early));
}

Result<std::pair<std::unique_ptr<ByteStream>, std::unique_ptr<ByteStream>>> make_stream_pair() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) < 0) {
    return errno_error("make a socket pair", errno);
  }
  return std::pair(make_socket_stream(Fd(ends[0])), make_socket_stream(Fd(ends[1])));
}

}  // namespace fuse
