#include "guest/process_stream.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <deque>
#include <string>
#include <utility>

#include "base/text.h"
#include "guest/pty.h"

namespace fuse {

namespace {

constexpr std::size_t read_size = 64U << 10U;
// A terminal whose session has ended reports its end at once; this is for a
// kernel that does not.
constexpr std::chrono::seconds terminal_end_limit(2);

struct PipePair {
  Fd read{};
  Fd write{};
};

Result<PipePair> make_pipe() {
  std::array<int, 2> fds{-1, -1};
  if (::pipe2(fds.data(), O_CLOEXEC) < 0) return errno_error("create a pipe", errno);
  return PipePair{.read = Fd(fds[0]), .write = Fd(fds[1])};
}

void set_nonblocking(const Fd& fd) {
  ::fcntl(fd.get(), F_SETFL, ::fcntl(fd.get(), F_GETFL) | O_NONBLOCK);
}

class ProcessStream final : public StreamHandler {
 public:
  ProcessStream(EventLoop& loop, Children& children, ServerStream& stream, const ProcessPlan& plan)
      : loop_(loop), children_(children), stream_(stream), plan_(plan) {}
  ProcessStream(const ProcessStream&) = delete;
  ProcessStream& operator=(const ProcessStream&) = delete;
  ~ProcessStream() override {
    if (pid_ <= 0 || status_) return;
    children_.forget(pid_);
    ::kill(-pid_, SIGKILL);
  }

  Result<void> start() {
    ChildSpec spec = plan_.child;
    std::array<Fd, 3> childs_own;
    auto opened = plan_.terminal ? open_terminal(childs_own[0]) : open_pipes(childs_own);
    if (!opened) return opened;
    spec.terminal = plan_.terminal.has_value();
    spec.stdin_fd = childs_own[0].get();
    spec.stdout_fd = spec.terminal ? spec.stdin_fd : childs_own[1].get();
    spec.stderr_fd = spec.terminal ? spec.stdin_fd : childs_own[2].get();
    if (auto watched = watch(); !watched) return watched;
    const auto pid = children_.start(spec, [this](ExitStatus status) { on_exit(status); });
    if (!pid) {
      fail_to_start(Children::failure_of(spec, pid.error()));
      return {};
    }
    pid_ = *pid;
    if (plan_.timeout.count() > 0) {
      timeout_ = loop_.after(plan_.timeout, [this] {
        timed_out_ = true;
        if (!status_) ::kill(-pid_, SIGKILL);
      });
    }
    return {};
  }

  void on_data(std::uint8_t pipe, std::string_view bytes, bool end) override {
    if (pipe == pipe_control) {
      stream_.grant(bytes.size());
      if (const auto size = parse_resize(bytes)) set_terminal_size(input_.get(), *size);
      return;
    }
    unwritten_ += bytes;
    // A terminal's end of input is a character.
    if (end && plan_.terminal) {
      unwritten_ += '\x04';
      ++extra_;
    } else if (end) {
      input_ended_ = true;
    }
    write_input();
  }

  void on_credit() override {
    for (Output& output : outputs_) pump(output);
  }

 private:
  struct Output {
    std::uint8_t pipe = pipe_out;
    Fd fd{};
    // What is still to be read of it, once the process has ended.
    std::optional<std::size_t> left{};
    EventLoop::Registration watch{};
  };

  Result<void> open_pipes(std::array<Fd, 3>& childs_own) {
    if (plan_.has_input) {
      auto in = make_pipe();
      if (!in) return in.error();
      childs_own[0] = std::move(in->read);
      input_ = std::move(in->write);
      set_nonblocking(input_);
    }
    for (const std::uint8_t pipe : {pipe_out, pipe_err}) {
      auto out = make_pipe();
      if (!out) return out.error();
      childs_own[pipe] = std::move(out->write);
      set_nonblocking(out->read);
      outputs_.push_back({.pipe = pipe, .fd = std::move(out->read)});
    }
    return {};
  }

  Result<void> open_terminal(Fd& childs_own) {
    auto pty = open_pty(*plan_.terminal);
    if (!pty) return pty.error();
    childs_own = std::move(pty->inner);
    set_nonblocking(pty->outer);
    input_ = Fd(::fcntl(pty->outer.get(), F_DUPFD_CLOEXEC, 3));
    if (!input_.valid()) return errno_error("duplicate a terminal", errno);
    outputs_.push_back({.pipe = pipe_out, .fd = std::move(pty->outer)});
    return {};
  }

  Result<void> watch() {
    for (Output& output : outputs_) {
      auto watch = loop_.watch(output.fd.get(), EPOLLIN | EPOLLET,
                               [this, &output](std::uint32_t) { pump(output); });
      if (!watch) return watch.error();
      output.watch = *std::move(watch);
    }
    if (!input_.valid()) return {};
    auto watch =
        loop_.watch(input_.get(), EPOLLOUT | EPOLLET, [this](std::uint32_t) { write_input(); });
    if (!watch) return watch.error();
    input_watch_ = *std::move(watch);
    return {};
  }

  void fail_to_start(const StartFailure& failure) {
    stream_.send(plan_.terminal ? pipe_out : pipe_err, cat(failure.message, "\n"));
    stream_.close(exec_result_text({.status = {.code = failure.code, .signal = 0}}));
  }

  void write_input() {
    while (!unwritten_.empty() && input_.valid()) {
      const ssize_t wrote = ::write(input_.get(), unwritten_.data(), unwritten_.size());
      if (wrote > 0) {
        use_up(static_cast<std::size_t>(wrote));
      } else if (errno == EAGAIN) {
        return;
      } else if (errno != EINTR) {
        close_input();
      }
    }
    if (input_ended_) close_input();
    // Nobody reads it any more; the host may go on sending.
    if (!input_.valid()) use_up(unwritten_.size());
  }

  void use_up(std::size_t bytes) {
    unwritten_.erase(0, bytes);
    const std::size_t ours = std::min(bytes, std::exchange(extra_, 0));
    stream_.grant(bytes - ours);
  }

  void close_input() {
    if (plan_.terminal) return use_up(unwritten_.size());
    input_watch_.reset();
    input_.reset();
  }

  void pump(Output& output) {
    std::array<char, read_size> buffer;  // NOLINT(*-member-init): written by read
    while (output.fd.valid() && stream_.credit() > 0) {
      const std::size_t size =
          std::min({buffer.size(), stream_.credit(), output.left.value_or(buffer.size())});
      const ssize_t got = size == 0 ? 0 : ::read(output.fd.get(), buffer.data(), size);
      if (got > 0) {
        const auto count = static_cast<std::size_t>(got);
        stream_.send(output.pipe, {buffer.data(), count});
        if (output.left) *output.left -= count;
      } else if (got < 0 && errno == EINTR) {
        continue;
      } else if (got < 0 && errno == EAGAIN && !output.left) {
        return;
      } else {
        output.watch.reset();
        output.fd.reset();
      }
    }
    finish_if_done();
  }

  void on_exit(ExitStatus status) {
    status_ = status;
    timeout_.reset();
    if (plan_.terminal) {
      terminal_end_ = loop_.after(terminal_end_limit, [this] {
        outputs_.front().left = 0;
        pump(outputs_.front());
      });
    }
    for (Output& output : outputs_) {
      int waiting = 0;
      // What daemons write later is not this process's output.
      if (!plan_.terminal && ::ioctl(output.fd.get(), FIONREAD, &waiting) == 0) {
        output.left = static_cast<std::size_t>(std::max(waiting, 0));
      }
      pump(output);
    }
    finish_if_done();
  }

  void finish_if_done() {
    const bool all_out =
        std::ranges::none_of(outputs_, [](const Output& output) { return output.fd.valid(); });
    if (!status_ || !all_out) return;
    stream_.close(exec_result_text({.status = *status_, .timed_out = timed_out_}));
  }

  EventLoop& loop_;
  Children& children_;
  ServerStream& stream_;
  ProcessPlan plan_;
  pid_t pid_ = -1;
  std::optional<ExitStatus> status_{};
  bool timed_out_ = false;
  std::deque<Output> outputs_{};
  Fd input_{};
  std::string unwritten_{};
  std::size_t extra_ = 0;  // of these, bytes that the host did not send
  bool input_ended_ = false;
  EventLoop::Registration input_watch_{};
  EventLoop::Registration timeout_{};
  EventLoop::Registration terminal_end_{};
};

}  // namespace

std::unique_ptr<StreamHandler> start_process(EventLoop& loop, Children& children,
                                             ServerStream& stream, const ProcessPlan& plan) {
  auto process = std::make_unique<ProcessStream>(loop, children, stream, plan);
  if (auto started = process->start(); !started) stream.fail(started.error());
  return process;
}

}  // namespace fuse
