#include "base/write_apart.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include "base/fd.h"
#include "base/text.h"

namespace fuse {

namespace {

// Runs in the process apart, where only what is safe in a signal handler is: other
// threads may have held any lock when it was forked.
[[noreturn]] void attempt(const char* file, std::string_view text, int report) {
  // Whoever reads our output to its end must not wait for this one.
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (standard != report) ::close(standard);
  }
  int failure = 0;
  const int fd = ::open(file, O_WRONLY | O_TRUNC | O_CLOEXEC);
  if (fd < 0 || ::write(fd, text.data(), text.size()) < 0) failure = errno;
  // Nobody may be left to read it.
  if (::write(report, &failure, sizeof failure) < 0) ::_exit(1);
  ::_exit(0);
}

// Twice forked, so that what is left behind becomes a child of init.
Result<void> fork_apart(const char* file, std::string_view text, int report) {
  const pid_t between = ::fork();
  if (between < 0) return errno_error("fork", errno);
  if (between == 0) {
    const pid_t apart = ::fork();
    if (apart == 0) attempt(file, text, report);
    ::_exit(apart < 0 ? 1 : 0);
  }
  int status = 0;
  while (::waitpid(between, &status, 0) < 0) {
    if (errno != EINTR) return errno_error("wait for a child", errno);
  }
  if (status != 0) return Error{ErrorCode::internal, "fork: no process could be made"};
  return {};
}

Result<int> read_report(int fd, std::chrono::milliseconds limit) {
  const auto deadline = std::chrono::steady_clock::now() + limit;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd ready{fd, POLLIN, 0};
    const int count = ::poll(&ready, 1, static_cast<int>(std::max<long>(0, left.count())));
    if (count > 0) break;
    if (count < 0 && errno != EINTR) return errno_error("poll", errno);
    if (count == 0) {
      return Error{ErrorCode::unavailable,
                   cat("the kernel did not come back within ", limit.count(), " ms")};
    }
  }
  int failure = 0;
  const ssize_t got = ::read(fd, &failure, sizeof failure);
  if (got != static_cast<ssize_t>(sizeof failure)) {
    return Error{ErrorCode::internal, "the writing process died"};
  }
  return failure;
}

}  // namespace

Result<void> write_apart(const fs::path& file, std::string_view text,
                         std::chrono::milliseconds limit) {
  const std::string what = cat("write to ", file.native());
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) < 0) return errno_error("make a pipe", errno);
  const Fd reading(ends[0]);
  Fd writing(ends[1]);
  auto forked = fork_apart(file.c_str(), text, writing.get());
  if (!forked) return in_context(what, forked.error());
  writing.reset();
  const auto outcome = read_report(reading.get(), limit);
  if (!outcome) return in_context(what, outcome.error());
  if (*outcome != 0) return errno_error(what, *outcome);
  return {};
}

}  // namespace fuse
