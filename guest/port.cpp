#include "guest/port.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <thread>

#include "base/posix_host.h"
#include "base/text.h"

namespace fuse {

namespace {

constexpr std::size_t read_size = 64U << 10U;
constexpr std::chrono::milliseconds look_again(20);

// The device of the port called `name`, once the kernel has it.
std::optional<fs::path> find_virtio_port(const std::string& name) {
  PosixHost host;
  const fs::path all = "/sys/class/virtio-ports";
  const auto ports = host.list_dir(all);
  if (!ports) return std::nullopt;
  for (const std::string& port : *ports) {
    const auto found = host.read_file(all / port / "name");
    if (found && trim(*found) == name) return fs::path("/dev") / port;
  }
  return std::nullopt;
}

Result<Fd> open_virtio_port(const std::string& name, std::chrono::milliseconds patience) {
  const SteadyTime give_up = std::chrono::steady_clock::now() + patience;
  while (true) {
    int failure = ENOENT;
    if (const auto device = find_virtio_port(name)) {
      Fd fd(::open(device->c_str(), O_RDWR | O_NONBLOCK | O_CLOEXEC));
      if (fd.valid()) return fd;
      failure = errno;
    }
    if (std::chrono::steady_clock::now() >= give_up) {
      return errno_error(cat("open the port ", name, " of /sys/class/virtio-ports"), failure);
    }
    std::this_thread::sleep_for(look_again);
  }
}

Result<Fd> listen_at(const fs::path& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string& name = path.native();
  if (name.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::invalid_argument, cat("a socket's path is too long: ", name)};
  }
  std::memcpy(address.sun_path, name.data(), name.size());
  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return errno_error("create a socket", errno);
  ::unlink(name.c_str());
  if (::bind(fd.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) < 0) {
    return errno_error(cat("bind ", name), errno);
  }
  if (::listen(fd.get(), 8) < 0) return errno_error(cat("listen on ", name), errno);
  return fd;
}

}  // namespace

Result<std::unique_ptr<Port>> Port::open(EventLoop& loop, const PortPlace& place,
                                         std::chrono::milliseconds patience) {
  // A write to a connection that has ended is an error, not the agent's end.
  ::signal(SIGPIPE, SIG_IGN);
  if (!place.listen.empty()) {
    auto fd = listen_at(place.listen);
    if (!fd) return fd.error();
    return std::make_unique<Port>(loop, *std::move(fd), true);
  }
  if (place.fd >= 0) {
    Fd fd(place.fd);
    const int flags = ::fcntl(fd.get(), F_GETFL);
    if (flags < 0 || ::fcntl(fd.get(), F_SETFL, flags | O_NONBLOCK) < 0 ||
        ::fcntl(fd.get(), F_SETFD, FD_CLOEXEC) < 0) {
      return errno_error("use the port's descriptor", errno);
    }
    return std::make_unique<Port>(loop, std::move(fd), false);
  }
  auto fd = open_virtio_port(place.virtio_name, patience);
  if (!fd) return fd.error();
  return std::make_unique<Port>(loop, *std::move(fd), false);
}

Result<void> Port::serve(ServerLink& link) {
  link_ = &link;
  if (listens_) return watch_listener();
  if (auto watched = watch_connection(); !watched) return watched;
  link.announce_restart();
  return {};
}

Result<void> Port::watch_listener() {
  auto watch = loop_.watch(listener_.get(), EPOLLIN, [this](std::uint32_t) { accept_one(); });
  if (!watch) return watch.error();
  listener_watch_ = *std::move(watch);
  return {};
}

// Edge-triggered: a virtio port without a host reports a hang-up for as long as
// there is none, and tells of the next host with a new event.
Result<void> Port::watch_connection() {
  auto watch =
      loop_.watch(fd_.get(), EPOLLIN | EPOLLOUT | EPOLLET, [this](std::uint32_t) { on_event(); });
  if (!watch) return watch.error();
  connection_watch_ = *std::move(watch);
  return {};
}

void Port::accept_one() {
  Fd fd(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!fd.valid()) return;
  fd_ = std::move(fd);
  if (!watch_connection()) return fd_.reset();
  listener_watch_.set_events(0);
}

void Port::on_event() {
  read_all();
  if (fd_.valid()) write_now();
}

void Port::read_all() {
  std::array<char, read_size> buffer;  // NOLINT(*-member-init): written by read
  while (fd_.valid()) {
    const ssize_t got = ::read(fd_.get(), buffer.data(), buffer.size());
    if (got > 0) {
      link_->receive({buffer.data(), static_cast<std::size_t>(got)});
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else if (got < 0 && errno == EAGAIN) {
      return;
    } else {
      return hang_up();
    }
  }
}

// The host's end was closed.  A device waits for the next host; a connection that
// was accepted makes room for the next one.
void Port::hang_up() {
  link_->reset();
  if (!listens_) return;
  connection_watch_.reset();
  fd_.reset();
  listener_watch_.set_events(EPOLLIN);
}

void Port::flush() {
  if (std::exchange(flush_posted_, true)) return;
  loop_.post([this] {
    flush_posted_ = false;
    write_now();
  });
}

void Port::write_now() {
  if (link_ == nullptr) return;
  while (fd_.valid()) {
    const std::string_view unsent = link_->unsent();
    if (unsent.empty()) return;
    const ssize_t wrote = ::write(fd_.get(), unsent.data(), unsent.size());
    if (wrote > 0) {
      link_->mark_sent(static_cast<std::size_t>(wrote));
    } else if (wrote == 0 || errno != EINTR) {
      // A full port says when it has room; a closed one is noticed by reading.
      return;
    }
  }
}

}  // namespace fuse
