#include "guest/command.h"

#include <fcntl.h>
#include <sys/epoll.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/text.h"

namespace fuse {

namespace {

// What is still read of a command that has ended: daemons may go on writing.
constexpr int most_last_reads = 64;

}  // namespace

Command::Command(EventLoop& loop, Children& children, CommandPlan plan, OnDone on_done)
    : loop_(loop), children_(children), plan_(std::move(plan)), on_done_(std::move(on_done)) {}

Command::~Command() {
  if (pid_ <= 0) return;
  children_.forget(pid_);
  ::kill(-pid_, SIGKILL);
}

Result<std::unique_ptr<Command>> Command::start(EventLoop& loop, Children& children,
                                                CommandPlan plan, OnDone on_done) {
  auto command = std::make_unique<Command>(loop, children, std::move(plan), std::move(on_done));
  if (auto begun = command->begin(); !begun) return begun.error();
  return command;
}

Result<void> Command::begin() {
  std::array<int, 2> fds{-1, -1};
  if (::pipe2(fds.data(), O_CLOEXEC) < 0) return errno_error("create a pipe", errno);
  output_ = Fd(fds[0]);
  const Fd childs_own(fds[1]);
  // Ours alone: the command's end blocks.
  ::fcntl(output_.get(), F_SETFL, O_NONBLOCK);
  auto watch = loop_.watch(output_.get(), EPOLLIN, [this](std::uint32_t) { read_output(); });
  if (!watch) return watch.error();
  watch_ = *std::move(watch);
  plan_.child.stdout_fd = childs_own.get();
  plan_.child.stderr_fd = childs_own.get();
  const auto pid = children_.start(plan_.child, [this](ExitStatus status) { on_exit(status); });
  if (!pid) {
    const StartFailure failure = Children::failure_of(plan_.child, pid.error());
    watch_.reset();
    timer_ = loop_.after({}, [this, failure] {
      finish({.status = {.code = failure.code, .signal = 0}, .output = failure.message});
    });
    return {};
  }
  pid_ = *pid;
  if (plan_.timeout.count() > 0) timer_ = loop_.after(plan_.timeout, [this] { on_timeout(); });
  return {};
}

void Command::read_output() {
  std::array<char, 4096> buffer;  // NOLINT(*-member-init): written by read
  const ssize_t got = ::read(output_.get(), buffer.data(), buffer.size());
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) {
    watch_.reset();
    output_.reset();
    return;
  }
  kept_.append(buffer.data(), static_cast<std::size_t>(got));
  if (kept_.size() > plan_.most_output) kept_.erase(0, kept_.size() - plan_.most_output);
}

void Command::on_exit(ExitStatus status) {
  pid_ = -1;
  for (int i = 0; i < most_last_reads && output_.valid(); ++i) read_output();
  finish({.status = status, .output = kept_});
}

void Command::on_timeout() {
  ::kill(-pid_, SIGKILL);
  finish({.timed_out = true, .output = kept_});
}

void Command::finish(const CommandResult& result) {
  watch_.reset();
  timer_.reset();
  output_.reset();
  if (const auto on_done = std::exchange(on_done_, nullptr)) on_done(result);
}

}  // namespace fuse
