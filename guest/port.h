#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "base/host.h"
#include "base/result.h"
#include "guest/event_loop.h"
#include "guest/server_link.h"

namespace fuse {

// Where hosts reach the agent.  One of:
struct PortPlace {
  // A virtio-serial port, found by its name in /sys/class/virtio-ports.
  std::string virtio_name{};
  // A unix socket to listen on, one connection at a time as QEMU does it: a
  // second one waits until the first has ended.
  fs::path listen{};
  // A connected socket that stays.
  int fd = -1;
};

// Moves bytes between a port and a link.
class Port {
 public:
  // Opens the port; with virtio waits up to `patience` for it to appear.
  static Result<std::unique_ptr<Port>> open(EventLoop& loop, const PortPlace& place,
                                            std::chrono::milliseconds patience);
  Port(EventLoop& loop, Fd fd, bool listens)
      : loop_(loop),
        listens_(listens),
        fd_(listens ? Fd() : std::move(fd)),
        listener_(listens ? std::move(fd) : Fd()) {}
  Port(const Port&) = delete;
  Port& operator=(const Port&) = delete;
  ~Port() = default;

  // Serves the link from here on; it must outlive the port's use of it.
  Result<void> serve(ServerLink& link);
  // Sends what the link has to send, soon.
  void flush();
  // Sends what can be sent at once.
  void write_now();

 private:
  Result<void> watch_connection();
  Result<void> watch_listener();
  void on_event();
  void read_all();
  void hang_up();
  void accept_one();

  EventLoop& loop_;
  bool listens_;
  Fd fd_;
  Fd listener_;
  ServerLink* link_ = nullptr;
  bool flush_posted_ = false;
  EventLoop::Registration connection_watch_{};
  EventLoop::Registration listener_watch_{};
};

}  // namespace fuse
