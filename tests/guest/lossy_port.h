#pragma once

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <memory>
#include <thread>

#include "base/fd.h"
#include "base/posix_process.h"
#include "tests/catch.h"
#include "tests/guest/temp_dir.h"

namespace fuse {

// An agent behind a port like that of a VM: its end of the port never learns of
// hosts that come and go, what it has written and the port holds reaches the next
// host, and what was under way to a host that goes is lost.
class LossyPort {
 public:
  LossyPort() {
    std::array<int, 2> fds{-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0);
    port_ = Fd(fds[0]);
    const Fd guest(fds[1]);
    fs::create_directories(root());
    auto started = spawn_process(
        {.argv = {GUEST_AGENT_PROCESS, root()}, .stdin_fd = guest.get(), .stderr_fd = 2});
    REQUIRE(started);
    agent_ = *std::move(started);
  }
  LossyPort(const LossyPort&) = delete;
  LossyPort& operator=(const LossyPort&) = delete;
  ~LossyPort() { end(); }

  [[nodiscard]] fs::path root() const { return dir_.path() / "root"; }

  // A new host, after the last one has gone: cut off once so many bytes have gone
  // each way.
  Fd connect(std::size_t most_to_host, std::size_t most_to_guest) {
    end();
    std::array<int, 2> fds{-1, -1};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds.data()) == 0);
    relay_ = std::thread([this, host = Fd(fds[1]), most_to_host, most_to_guest]() mutable {
      relay(std::move(host), most_to_host, most_to_guest);
    });
    return Fd(fds[0]);
  }
  Fd connect() {
    constexpr std::size_t all = std::numeric_limits<std::size_t>::max();
    return connect(all, all);
  }
  // Waits for the end of a host that was cut off or has closed.
  void end() {
    if (relay_.joinable()) relay_.join();
  }

 private:
  // Moves what is there, up to the rest of the allowance; false when it is used up
  // or an end has closed.
  static bool move(const Fd& from, const Fd& to, std::size_t& allowance) {
    std::array<char, 8192> buffer{};
    const ssize_t got = ::read(from.get(), buffer.data(), std::min(buffer.size(), allowance));
    if (got <= 0) return false;
    std::size_t sent = 0;
    while (sent < static_cast<std::size_t>(got)) {
      const ssize_t wrote = ::send(to.get(), buffer.data() + sent,
                                   static_cast<std::size_t>(got) - sent, MSG_NOSIGNAL);
      if (wrote <= 0) return false;
      sent += static_cast<std::size_t>(wrote);
    }
    allowance -= static_cast<std::size_t>(got);
    return allowance > 0;
  }

  void relay(Fd host, std::size_t to_host, std::size_t to_guest) {
    bool open = to_host > 0 && to_guest > 0;
    while (open) {
      std::array<pollfd, 2> events{{{.fd = host.get(), .events = POLLIN, .revents = 0},
                                    {.fd = port_.get(), .events = POLLIN, .revents = 0}}};
      if (::poll(events.data(), events.size(), -1) < 0) continue;
      if (events[0].revents != 0) open = move(host, port_, to_guest);
      if (open && events[1].revents != 0) open = move(port_, host, to_host);
    }
  }

  TempDir dir_{};
  Fd port_{};
  std::unique_ptr<Process> agent_{};
  std::thread relay_{};
};

}  // namespace fuse
