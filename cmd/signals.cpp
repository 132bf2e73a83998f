#include "cmd/signals.h"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <thread>
#include <utility>

#include "base/fd.h"

namespace fuse::cmd {

namespace {

bool is_ignored(int number) {
  struct sigaction action {};
  return ::sigaction(number, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

class PosixSignalWatch final : public SignalWatch {
 public:
  PosixSignalWatch(const std::vector<int>& numbers, SignalHandler handler)
      : handler_(std::move(handler)) {
    sigset_t watched{};
    ::sigemptyset(&watched);
    for (const int number : numbers) {
      if (!is_ignored(number)) ::sigaddset(&watched, number);
    }
    ::pthread_sigmask(SIG_BLOCK, &watched, &before_);
    signals_ = Fd(::signalfd(-1, &watched, SFD_CLOEXEC | SFD_NONBLOCK));
    end_ = Fd(::eventfd(0, EFD_CLOEXEC));
    thread_ = std::thread([this] { work(); });
  }
  PosixSignalWatch(const PosixSignalWatch&) = delete;
  PosixSignalWatch& operator=(const PosixSignalWatch&) = delete;
  PosixSignalWatch(PosixSignalWatch&&) = delete;
  PosixSignalWatch& operator=(PosixSignalWatch&&) = delete;
  ~PosixSignalWatch() override {
    const std::uint64_t one = 1;
    (void)!::write(end_.get(), &one, sizeof one);
    thread_.join();
    ::pthread_sigmask(SIG_SETMASK, &before_, nullptr);
  }

 private:
  void work() const {
    for (;;) {
      std::array<pollfd, 2> events = {pollfd{.fd = signals_.get(), .events = POLLIN, .revents = 0},
                                      pollfd{.fd = end_.get(), .events = POLLIN, .revents = 0}};
      if (::poll(events.data(), events.size(), -1) < 0) continue;
      if (events[1].revents != 0) return;
      signalfd_siginfo info{};
      if (::read(signals_.get(), &info, sizeof info) == sizeof info) {
        handler_(static_cast<int>(info.ssi_signo));
      }
    }
  }

  SignalHandler handler_;
  sigset_t before_{};
  Fd signals_{};
  Fd end_{};
  std::thread thread_{};
};

}  // namespace

std::unique_ptr<SignalWatch> watch_signals(const std::vector<int>& numbers, SignalHandler handler) {
  return std::make_unique<PosixSignalWatch>(numbers, std::move(handler));
}

}  // namespace fuse::cmd
