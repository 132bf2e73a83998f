#include "base/posix_process.h"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/fd.h"
#include "base/posix_host.h"
#include "base/text.h"

namespace fuse {

namespace {

// glibc 2.36's <sys/pidfd.h> cannot be used from C++, hence the bare calls.
int pidfd_open(pid_t pid) {
  return static_cast<int>(::syscall(SYS_pidfd_open, pid, 0));
}
int pidfd_send_signal(int fd, int number) {
  return static_cast<int>(::syscall(SYS_pidfd_send_signal, fd, number, nullptr, 0));
}

class PosixProcess final : public Process {
 public:
  PosixProcess(pid_t pid, std::uint64_t start_time, Fd pidfd, bool kill_when_dropped)
      : pid_(pid),
        start_time_(start_time),
        pidfd_(std::move(pidfd)),
        kill_when_dropped_(kill_when_dropped) {}
  PosixProcess(const PosixProcess&) = delete;
  PosixProcess& operator=(const PosixProcess&) = delete;
  PosixProcess(PosixProcess&&) = delete;
  PosixProcess& operator=(PosixProcess&&) = delete;
  ~PosixProcess() override {
    if (!kill_when_dropped_ || status_ || !pidfd_.valid()) return;
    (void)signal(SIGKILL);
    (void)reap();
  }

  [[nodiscard]] pid_t pid() const override { return pid_; }
  [[nodiscard]] std::uint64_t start_time() const override { return start_time_; }

  Result<std::optional<ExitStatus>> wait(std::chrono::milliseconds timeout) override {
    if (status_) return status_;
    pollfd event{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
    const int ready = ::poll(&event, 1, static_cast<int>(timeout.count()));
    if (ready < 0 && errno != EINTR) return errno_error(cat("wait for process ", pid_), errno);
    if (ready <= 0) return std::optional<ExitStatus>();
    return reap();
  }

  Result<void> signal(int number) override {
    if (status_) return {};
    if (pidfd_send_signal(pidfd_.get(), number) == 0 || errno == ESRCH) return {};
    return errno_error(cat("send signal ", number, " to process ", pid_), errno);
  }

  void release() override { kill_when_dropped_ = false; }

 private:
  // Also a released or adopted process may be our child, and would stay a zombie.
  Result<std::optional<ExitStatus>> reap() {
    siginfo_t info{};
    while (::waitid(P_PIDFD, static_cast<id_t>(pidfd_.get()), &info, WEXITED) < 0) {
      if (errno == ECHILD) return status_ = ExitStatus{};
      if (errno != EINTR) return errno_error(cat("reap process ", pid_), errno);
    }
    status_ = info.si_code == CLD_EXITED ? ExitStatus{.code = info.si_status, .signal = 0}
                                         : ExitStatus{.code = 0, .signal = info.si_status};
    return status_;
  }

  pid_t pid_;
  std::uint64_t start_time_;
  Fd pidfd_;
  bool kill_when_dropped_;
  std::optional<ExitStatus> status_{};
};

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (const std::string& s : strings) out.push_back(const_cast<char*>(s.c_str()));
  out.push_back(nullptr);
  return out;
}

// posix_spawn's two argument objects, with their destructors.
struct SpawnArguments {
  posix_spawn_file_actions_t actions{};
  posix_spawnattr_t attributes{};
  SpawnArguments() {
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawnattr_init(&attributes);
  }
  SpawnArguments(const SpawnArguments&) = delete;
  SpawnArguments& operator=(const SpawnArguments&) = delete;
  ~SpawnArguments() {
    ::posix_spawn_file_actions_destroy(&actions);
    ::posix_spawnattr_destroy(&attributes);
  }
};

void prepare(SpawnArguments& arguments, const SpawnSpec& spec, const std::array<int, 3>& fds) {
  // The three may overlap 0..2, and dup2 of a descriptor onto itself keeps
  // close-on-exec off only by special case: copies above 2 make order harmless.
  for (int target = 0; target < 3; ++target) {
    ::posix_spawn_file_actions_adddup2(&arguments.actions, fds[static_cast<std::size_t>(target)],
                                       target);
  }
  // Ours are close-on-exec, but libraries open some that are not.
  ::posix_spawn_file_actions_addclosefrom_np(&arguments.actions, 3);
  if (!spec.directory.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&arguments.actions, spec.directory.c_str());
  }
  short flags = POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF;
  if (spec.new_session) flags = static_cast<short>(flags | POSIX_SPAWN_SETSID);
  ::posix_spawnattr_setflags(&arguments.attributes, flags);
  sigset_t none{};
  ::sigemptyset(&none);
  ::posix_spawnattr_setsigmask(&arguments.attributes, &none);
  sigset_t all{};
  ::sigfillset(&all);
  ::posix_spawnattr_setsigdefault(&arguments.attributes, &all);
}

}  // namespace

Result<std::uint64_t> process_start_time(pid_t pid) {
  const auto stat = PosixHost().read_file(cat("/proc/", pid, "/stat"));
  if (!stat) return stat.error();
  // The command name may hold anything, so count fields after the last ')'.
  const std::size_t name_end = stat->rfind(')');
  const auto fields = split(name_end == std::string::npos ? "" : stat->substr(name_end + 2), ' ');
  constexpr std::size_t start_time_after_name = 19;
  const auto ticks = fields.size() > start_time_after_name
                         ? parse_int(fields[start_time_after_name])
                         : std::nullopt;
  if (!ticks) return Error{ErrorCode::internal, cat("/proc/", pid, "/stat is not as expected")};
  return static_cast<std::uint64_t>(*ticks);
}

Result<std::unique_ptr<Process>> spawn_process(const SpawnSpec& spec) {
  if (spec.argv.empty()) return Error{ErrorCode::invalid_argument, "nothing to start"};
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return errno_error("open /dev/null", errno);

  std::array<int, 3> fds = {spec.stdin_fd, spec.stdout_fd, spec.stderr_fd};
  std::array<Fd, 3> copies;
  for (std::size_t i = 0; i < fds.size(); ++i) {
    copies[i] = Fd(::fcntl(fds[i] < 0 ? null.get() : fds[i], F_DUPFD_CLOEXEC, 3));
    if (!copies[i].valid()) return errno_error("duplicate a descriptor", errno);
    fds[i] = copies[i].get();
  }

  SpawnArguments arguments;
  prepare(arguments, spec, fds);
  const auto argv = pointers(spec.argv);
  const auto environment = spec.environment ? pointers(*spec.environment) : std::vector<char*>();
  pid_t pid = 0;
  const int failure = ::posix_spawnp(&pid, argv[0], &arguments.actions, &arguments.attributes,
                                     argv.data(), spec.environment ? environment.data() : environ);
  if (failure != 0) return errno_error(cat("start ", spec.argv[0]), failure);

  // Our own unreaped child: its pid cannot have been recycled yet.
  Fd pidfd(pidfd_open(pid));
  const int open_errno = errno;
  const auto started = process_start_time(pid);
  if (!pidfd.valid() || !started) {
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
    if (!started) return started.error();
    return errno_error(cat("open a pidfd for ", spec.argv[0]), open_errno);
  }
  return std::unique_ptr<Process>(
      std::make_unique<PosixProcess>(pid, *started, std::move(pidfd), true));
}

Result<std::unique_ptr<Process>> adopt_process(pid_t pid, std::uint64_t start_time) {
  const Error gone{ErrorCode::not_found, cat("process ", pid, " is gone")};
  if (pid <= 0) return gone;
  Fd pidfd(pidfd_open(pid));
  if (!pidfd.valid()) {
    if (errno == ESRCH) return gone;
    return errno_error(cat("open a pidfd for process ", pid), errno);
  }
  const auto started = process_start_time(pid);
  if (!started || *started != start_time) return gone;
  return std::unique_ptr<Process>(
      std::make_unique<PosixProcess>(pid, start_time, std::move(pidfd), false));
}

}  // namespace fuse
