#include "guest/children.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <optional>

#include "base/text.h"

namespace fuse {

namespace {

constexpr std::string_view default_path =
    "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> out;
  out.reserve(strings.size() + 1);
  for (const std::string& text : strings) out.push_back(const_cast<char*>(text.c_str()));
  out.push_back(nullptr);
  return out;
}

std::string path_in(const std::vector<std::string>& environment) {
  for (const std::string& entry : environment) {
    if (entry.starts_with("PATH=")) return entry.substr(5);
  }
  return std::string(default_path);
}

bool is_file(const std::string& path) {
  struct stat found {};
  return ::stat(path.c_str(), &found) == 0 && S_ISREG(found.st_mode);
}

// The file to execute; one that is found but cannot be run only when there is no
// better.
std::optional<std::string> find_command(const ChildSpec& spec) {
  const std::string& name = spec.argv.front();
  if (name.empty()) return std::nullopt;
  if (name.find('/') != std::string::npos) return name;
  std::optional<std::string> second_best;
  for (const std::string& dir : split(path_in(spec.environment), ':')) {
    std::string file = cat(dir.empty() ? "." : dir, "/", name);
    if (!is_file(file)) continue;
    if (::access(file.c_str(), X_OK) == 0) return file;
    if (!second_best) second_best = std::move(file);
  }
  return second_best;
}

// What the child needs between fork and exec, made before: there it may only make
// system calls.
struct Launch {
  const char* file = nullptr;
  char* const* argv = nullptr;
  char* const* environment = nullptr;
  const char* directory = nullptr;
  std::array<int, 3> fds{-1, -1, -1};
  bool terminal = false;
  int cgroup_fd = -1;
  int report_fd = -1;
};

void reset_signals() {
  for (int number = 1; number < NSIG; ++number) ::signal(number, SIG_DFL);
  sigset_t none{};
  ::sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
}

// An agent in a VM is kept from the kernel's OOM killer; what it starts is not.
void allow_oom_kill() {
  const int fd = ::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  (void)!::write(fd, "0", 1);
  ::close(fd);
}

bool arrange(const Launch& launch) {
  ::setsid();
  reset_signals();
  allow_oom_kill();
  if (launch.cgroup_fd >= 0 && ::write(launch.cgroup_fd, "0", 1) < 0) return false;
  // The three are above 2, so none is overwritten before it is copied.
  for (int target = 0; target < 3; ++target) {
    if (::dup2(launch.fds[static_cast<std::size_t>(target)], target) < 0) return false;
  }
  if (launch.terminal && ::ioctl(0, TIOCSCTTY, 0) < 0) return false;
  return launch.directory == nullptr || ::chdir(launch.directory) == 0;
}

[[noreturn]] void run_in_child(const Launch& launch) {
  if (arrange(launch)) ::execve(launch.file, launch.argv, launch.environment);
  const int failure = errno;
  (void)!::write(launch.report_fd, &failure, sizeof failure);
  ::_exit(127);
}

Result<std::array<Fd, 3>> copies_above_2(const ChildSpec& spec) {
  const Fd null(::open("/dev/null", O_RDWR | O_CLOEXEC));
  if (!null.valid()) return errno_error("open /dev/null", errno);
  const std::array<int, 3> wanted = {spec.stdin_fd, spec.stdout_fd, spec.stderr_fd};
  std::array<Fd, 3> copies;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const int from = wanted[i] < 0 ? null.get() : wanted[i];
    copies[i] = Fd(::fcntl(from, F_DUPFD_CLOEXEC, 3));
    if (!copies[i].valid()) return errno_error("duplicate a descriptor", errno);
  }
  return copies;
}

// 0 once the child runs its program, else the errno it failed with.
int await_exec(int report_fd) {
  int failure = 0;
  while (true) {
    const ssize_t got = ::read(report_fd, &failure, sizeof failure);
    if (got == static_cast<ssize_t>(sizeof failure)) return failure;
    if (got == 0) return 0;
    if (errno != EINTR) return errno;
  }
}

ExitStatus status_of(int wait_status) {
  if (WIFSIGNALED(wait_status)) return {.code = 0, .signal = WTERMSIG(wait_status)};
  return {.code = WEXITSTATUS(wait_status), .signal = 0};
}

}  // namespace

Result<std::unique_ptr<Children>> Children::create(EventLoop& loop) {
  sigset_t set{};
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGCHLD);
  if (::sigprocmask(SIG_BLOCK, &set, nullptr) < 0) return errno_error("block SIGCHLD", errno);
  Fd signals(::signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.valid()) return errno_error("create a signal descriptor", errno);
  // Daemons that lose their parent come to us, so that none is left a zombie.
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
  auto children = std::make_unique<Children>(std::move(signals));
  Children* const raw = children.get();
  auto watch = loop.watch(raw->signals_.get(), 1U /* EPOLLIN */, [raw](std::uint32_t) {
    signalfd_siginfo info{};
    while (::read(raw->signals_.get(), &info, sizeof info) > 0) {
    }
    raw->reap();
  });
  if (!watch) return watch.error();
  raw->watch_ = *std::move(watch);
  return children;
}

Result<pid_t> Children::start(const ChildSpec& spec, OnExit on_exit) {
  if (spec.argv.empty()) return Error{ErrorCode::invalid_argument, "nothing to start"};
  const auto file = find_command(spec);
  if (!file) return errno_error(spec.argv.front(), ENOENT);
  const auto fds = copies_above_2(spec);
  if (!fds) return fds.error();
  std::array<int, 2> report{-1, -1};
  if (::pipe2(report.data(), O_CLOEXEC) < 0) return errno_error("create a pipe", errno);
  const Fd report_read(report[0]);
  Fd report_write(report[1]);

  std::vector<std::string> argv = spec.argv;
  if (!spec.argv0.empty()) argv.front() = spec.argv0;
  const auto argv_pointers = pointers(argv);
  const auto environment = pointers(spec.environment);
  const Launch launch{.file = file->c_str(),
                      .argv = argv_pointers.data(),
                      .environment = environment.data(),
                      .directory = spec.directory.empty() ? nullptr : spec.directory.c_str(),
                      .fds = {(*fds)[0].get(), (*fds)[1].get(), (*fds)[2].get()},
                      .terminal = spec.terminal,
                      .cgroup_fd = spec.cgroup_fd,
                      .report_fd = report_write.get()};
  const pid_t pid = ::fork();
  if (pid < 0) return errno_error(cat("start ", spec.argv.front()), errno);
  if (pid == 0) run_in_child(launch);
  report_write.reset();
  if (const int failure = await_exec(report_read.get()); failure != 0) {
    ::waitpid(pid, nullptr, 0);
    return errno_error(spec.argv.front(), failure);
  }
  waiting_[pid] = std::move(on_exit);
  return pid;
}

StartFailure Children::failure_of(const ChildSpec& spec, const Error& error) {
  const std::string name = spec.argv.empty() ? "" : spec.argv.front();
  return {.code = error.code == ErrorCode::not_found ? 127 : 126,
          .message = cat("fuse: cannot start ", error.message.empty() ? name : error.message)};
}

void Children::reap() {
  while (true) {
    int status = 0;
    const pid_t pid = ::waitpid(-1, &status, WNOHANG);
    if (pid <= 0) return;
    const auto found = waiting_.find(pid);
    if (found == waiting_.end()) continue;
    const OnExit on_exit = std::move(found->second);
    waiting_.erase(found);
    on_exit(status_of(status));
  }
}

std::vector<std::string> guest_environment(const std::map<std::string, std::string>& over) {
  std::map<std::string, std::string> all = {
      {"HOME", "/root"},   {"USER", "root"},
      {"LOGNAME", "root"}, {"PATH", std::string(default_path)},
      {"TZ", "UTC"},       {"PYTHONUNBUFFERED", "1"}};
  for (const auto& [name, value] : over) all[name] = value;
  std::vector<std::string> out;
  out.reserve(all.size());
  for (const auto& [name, value] : all) out.push_back(cat(name, "=", value));
  return out;
}

}  // namespace fuse
