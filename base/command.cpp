#include "base/command.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/fd.h"
#include "base/text.h"

namespace fuse {

namespace {

struct Pipe {
  Fd read;
  Fd write;
};

Result<Pipe> make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) return errno_error("make a pipe", errno);
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// A socket rather than a pipe for stdin: MSG_NOSIGNAL spares us SIGPIPE.
Result<Pipe> make_stdin() {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) < 0) {
    return errno_error("make a socket pair", errno);
  }
  return Pipe{Fd(ends[0]), Fd(ends[1])};
}

// Reads what is there; closes at the end.
Result<void> drain(Fd& fd, std::string& into, std::size_t most) {
  std::array<char, 65536> buffer{};
  const ssize_t got = ::read(fd.get(), buffer.data(), buffer.size());
  if (got < 0) {
    if (errno == EINTR || errno == EAGAIN) return {};
    return errno_error("read a command's output", errno);
  }
  if (got == 0) fd.reset();
  into.append(buffer.data(), static_cast<std::size_t>(got));
  if (into.size() > most) {
    return Error{ErrorCode::internal, cat("it printed more than ", most, " bytes")};
  }
  return {};
}

void feed(Fd& fd, std::string_view& input) {
  const ssize_t sent = ::send(fd.get(), input.data(), input.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent > 0) input.remove_prefix(static_cast<std::size_t>(sent));
  const bool broken = sent < 0 && errno != EINTR && errno != EAGAIN;
  if (broken || input.empty()) fd.reset();
}

struct Streams {
  Fd in;
  Fd out;
  Fd err;
};

// Waits until one of the streams is ready, `most` at most, and moves what can be
// moved.
Result<void> move_bytes(Streams& streams, std::string_view& input, CommandOutput& output,
                        const CommandLimits& limits, std::chrono::milliseconds most) {
  std::array<pollfd, 3> fds = {{{streams.out.get(), POLLIN, 0},
                                {streams.err.get(), POLLIN, 0},
                                {streams.in.get(), POLLOUT, 0}}};
  if (::poll(fds.data(), fds.size(), static_cast<int>(std::min<long>(most.count(), 60000))) < 0) {
    if (errno == EINTR) return {};
    return errno_error("poll a command", errno);
  }
  if (fds[0].revents != 0) {
    if (auto r = drain(streams.out, output.out, limits.most_output); !r) return r.error();
  }
  if (fds[1].revents != 0) {
    if (auto r = drain(streams.err, output.err, limits.most_output); !r) return r.error();
  }
  if (fds[2].revents != 0) feed(streams.in, input);
  return {};
}

// Moves bytes until both outputs are closed.
Result<void> pump(Streams& streams, std::string_view input, CommandOutput& output,
                  const CommandLimits& limits) {
  const auto deadline = std::chrono::steady_clock::now() + limits.timeout;
  if (input.empty()) streams.in.reset();
  while (streams.out.valid() || streams.err.valid()) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      return Error{ErrorCode::unavailable,
                   cat("did not end within ", limits.timeout.count(), " ms")};
    }
    if (auto moved = move_bytes(streams, input, output, limits, left); !moved) return moved.error();
  }
  return {};
}

}  // namespace

Result<CommandOutput> run_command(Host& host, SpawnSpec spec, std::string_view input,
                                  const CommandLimits& limits) {
  auto in = make_stdin();
  if (!in) return in.error();
  auto out = make_pipe();
  if (!out) return out.error();
  auto err = make_pipe();
  if (!err) return err.error();
  spec.stdin_fd = in->read.get();
  spec.stdout_fd = out->write.get();
  spec.stderr_fd = err->write.get();
  auto process = host.spawn(spec);
  if (!process) return process.error();
  in->read.reset();
  out->write.reset();
  err->write.reset();

  const std::string name = spec.argv[0];
  CommandOutput output;
  Streams streams{std::move(in->write), std::move(out->read), std::move(err->read)};
  const auto pumped = pump(streams, input, output, limits);
  if (!pumped) return in_context(name, pumped.error());
  // Outputs are closed: what is left is the exit itself.
  const auto status = (*process)->wait(limits.timeout);
  if (!status) return status.error();
  if (!*status) {
    return Error{ErrorCode::unavailable,
                 cat(name, ": did not end within ", limits.timeout.count(), " ms")};
  }
  output.status = **status;
  return output;
}

Result<std::string> require_command(Host& host, SpawnSpec spec, std::string_view input,
                                    const CommandLimits& limits) {
  const std::string name = spec.argv.empty() ? "" : spec.argv[0];
  auto output = run_command(host, std::move(spec), input, limits);
  if (!output) return output.error();
  if (output->status.success()) return std::move(output->out);
  const std::string how = output->status.signal != 0
                              ? cat("was killed by signal ", output->status.signal)
                              : cat("exited with ", output->status.code);
  const std::string_view said = trim(output->err);
  return Error{ErrorCode::internal,
               said.empty() ? cat(name, " ", how) : cat(name, " ", how, ": ", said)};
}

}  // namespace fuse
