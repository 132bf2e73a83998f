#include "hostmode/qemu_process.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <utility>

#include "base/ids.h"
#include "base/posix_process.h"
#include "base/text.h"
#include "hostmode/qmp_client.h"
#include "hostmode/vm_paths.h"

namespace fuse {

namespace {

// The end of a file, whole lines where possible; "" when it cannot be read.
std::string tail_of(const fs::path& file) {
  constexpr off_t most = 16384;
  const Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  if (!fd.valid()) return "";
  const off_t size = ::lseek(fd.get(), 0, SEEK_END);
  const off_t from = std::max<off_t>(0, size - most);
  std::string text(static_cast<std::size_t>(std::max<off_t>(0, size - from)), '\0');
  const ssize_t got = ::pread(fd.get(), text.data(), text.size(), from);
  text.resize(static_cast<std::size_t>(std::max<ssize_t>(0, got)));
  return text;
}

// A console's bytes are the guest's: only printable ASCII goes into messages.
std::string printable(std::string_view line) {
  std::string out;
  bool in_escape = false;
  for (const char c : line) {
    if (in_escape) {
      in_escape = (c < '@' || c > '~') || c == '[';
    } else if (c == '\x1b') {
      in_escape = true;
    } else if (c >= ' ' && c <= '~') {
      out += c;
    }
  }
  return out;
}

std::vector<std::string> last_lines(const fs::path& file, std::size_t count) {
  std::vector<std::string> lines;
  for (const std::string& raw : split(tail_of(file), '\n')) {
    std::string line(trim(printable(raw)));
    if (!line.empty()) lines.push_back(std::move(line));
  }
  if (lines.size() > count) {
    lines.erase(lines.begin(), lines.end() - static_cast<std::ptrdiff_t>(count));
  }
  return lines;
}

// "qemu-system-x86_64: ...", as opposed to a hint that goes on from the line before.
bool begins_message(const std::string& line) {
  const std::size_t blank = line.find(' ');
  return blank != std::string::npos && blank > 0 && line[blank - 1] == ':';
}

// What QEMU said last, without the notes on parts of it that are not installed.
std::string last_words(const fs::path& dir) {
  std::string words;
  for (const std::string& line : last_lines(dir / vm_file::qemu_log, 20)) {
    const bool note =
        line.find(": module ") != std::string::npos && line.find(" not found") != std::string::npos;
    if (note) continue;
    words = words.empty() || begins_message(line) ? line : cat(words, " ", line);
  }
  return words;
}

// The end of the console's first line from `words` on, or "".
std::string said_on(const std::vector<std::string>& console, std::string_view words) {
  for (const std::string& line : console) {
    const std::size_t at = line.find(words);
    if (at != std::string::npos) return line.substr(at);
  }
  return "";
}

Result<void> wait_for_end(QemuProcess& qemu, std::chrono::milliseconds limit) {
  const auto status = qemu.wait(limit);
  if (!status) return status.error();
  if (*status) return {};
  return Error{ErrorCode::unavailable,
               cat("QEMU (process ", qemu.pid(), ") still runs after ", limit.count(), " ms")};
}

Result<void> ask_to_quit(const fs::path& dir) {
  constexpr std::chrono::milliseconds patience = std::chrono::seconds(2);
  auto qmp = QmpClient::connect(dir, {.greeting = patience, .answer = patience});
  if (!qmp) return qmp.error();
  if (auto asked = qmp->execute("quit"); !asked) return asked.error();
  return {};
}

}  // namespace

QemuProcess::QemuProcess(std::unique_ptr<Process> process, Fd pidfd, bool child)
    : pid_(process->pid()),
      start_time_(process->start_time()),
      child_(child),
      pidfd_(std::move(pidfd)),
      process_(std::move(process)) {}

Result<std::shared_ptr<QemuProcess>> QemuProcess::hold(std::unique_ptr<Process> process,
                                                       bool child) {
  // A pid is not recycled while its handle has not been reaped; of an adopted one
  // the handle says at the first wait when it is gone.
  Fd pidfd(static_cast<int>(::syscall(SYS_pidfd_open, process->pid(), 0)));
  if (!pidfd.valid()) {
    const int failure = errno;
    if (failure == ESRCH) return Error{ErrorCode::not_found, "the process is gone"};
    return errno_error(cat("open a pidfd for process ", process->pid()), failure);
  }
  return std::shared_ptr<QemuProcess>(new QemuProcess(std::move(process), std::move(pidfd), child));
}

QemuProcess::~QemuProcess() {
  process_->release();
}

Result<std::optional<ExitStatus>> QemuProcess::wait(std::chrono::milliseconds timeout) {
  pollfd event{.fd = pidfd_.get(), .events = POLLIN, .revents = 0};
  const int ready = ::poll(&event, 1, static_cast<int>(timeout.count()));
  if (ready < 0 && errno != EINTR) return errno_error(cat("wait for process ", pid_), errno);
  if (ready <= 0) return std::optional<ExitStatus>();
  const std::scoped_lock lock(mutex_);
  return process_->wait(std::chrono::milliseconds(0));
}

bool QemuProcess::running() {
  const auto status = wait(std::chrono::milliseconds(0));
  return status && !*status;
}

Result<void> QemuProcess::signal(int number) {
  const std::scoped_lock lock(mutex_);
  return process_->signal(number);
}

Result<std::shared_ptr<QemuProcess>> launch_qemu(Host& host, const fs::path& dir,
                                                 const std::vector<std::string>& argv) {
  for (const std::string_view name : {vm_file::qmp_socket, vm_file::channel_socket}) {
    if (auto removed = host.remove_all(dir / name); !removed) return removed.error();
  }
  const fs::path log = dir / vm_file::qemu_log;
  const Fd output(::open(log.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  if (!output.valid()) return errno_error(cat("open ", log.native()), errno);
  auto process = host.spawn({.argv = argv,
                             .directory = dir,
                             .stdout_fd = output.get(),
                             .stderr_fd = output.get(),
                             .new_session = true});
  if (!process) return process.error();
  return QemuProcess::hold(std::move(process).value(), true);
}

Result<std::shared_ptr<QemuProcess>> adopt_qemu(const VmProcess& process,
                                                const std::string& boot_id) {
  if (process.pid == 0) return Error{ErrorCode::not_found, "it was never started"};
  if (process.boot_id != boot_id) return Error{ErrorCode::not_found, "the host was restarted"};
  auto adopted = adopt_process(process.pid, process.start_time);
  if (!adopted) return adopted.error();
  auto qemu = QemuProcess::hold(std::move(adopted).value(), false);
  if (!qemu) return qemu.error();
  // A zombie that nobody has reaped still has its pid.
  if (!(*qemu)->running()) {
    return Error{ErrorCode::not_found, cat("process ", process.pid, " is gone")};
  }
  return qemu;
}

Result<std::shared_ptr<QemuProcess>> find_qemu(Host& host, const std::string& uid) {
  const std::string wanted = cat('\0', "-uuid", '\0', ulid_to_uuid(uid), '\0');
  const auto names = host.list_dir("/proc");
  if (!names) return names.error();
  for (const std::string& name : *names) {
    const auto pid = parse_int(name);
    if (!pid) continue;
    const auto command = host.read_file(fs::path("/proc") / name / "cmdline");
    if (!command || command->find(wanted) == std::string::npos) continue;
    const auto started = process_start_time(static_cast<pid_t>(*pid));
    if (!started) continue;
    auto adopted = adopt_process(static_cast<pid_t>(*pid), *started);
    if (!adopted) continue;
    // Read once more, now that the pid cannot mean another one.
    const auto still = host.read_file(fs::path("/proc") / name / "cmdline");
    if (!still || still->find(wanted) == std::string::npos) continue;
    return QemuProcess::hold(std::move(adopted).value(), false);
  }
  return Error{ErrorCode::not_found, cat("no QEMU of ", uid, " is running")};
}

bool runs_in(const QemuProcess& qemu, const fs::path& dir) {
  struct stat own {};
  struct stat there {};
  // It is about to end, or the kernel does not let us look.
  if (::stat(cat("/proc/", qemu.pid(), "/cwd").c_str(), &own) < 0) return true;
  if (::stat(dir.c_str(), &there) < 0) return errno != ENOENT && errno != ENOTDIR;
  return own.st_dev == there.st_dev && own.st_ino == there.st_ino;
}

Result<std::vector<std::string>> find_homeless(Host& host, const fs::path& vms) {
  const auto names = host.list_dir("/proc");
  if (!names) return names.error();
  std::error_code failure;
  // As the kernel spells it.
  const std::string home = fs::weakly_canonical(vms, failure).native() + "/";
  constexpr std::string_view removed = " (deleted)";
  std::vector<std::string> uids;
  for (const std::string& name : *names) {
    if (!parse_int(name)) continue;
    const auto folder = host.read_link(fs::path("/proc") / name / "cwd");
    if (!folder || !folder->native().starts_with(home)) continue;
    if (!folder->native().ends_with(removed)) continue;
    std::string uid = folder->native().substr(home.size());
    uid.erase(uid.size() - removed.size());
    if (is_uid(uid)) uids.push_back(std::move(uid));
  }
  return uids;
}

Result<void> stop_qemu(QemuProcess& qemu, const fs::path& dir, const StopLimits& limits) {
  if (!qemu.running()) return {};
  if (ask_to_quit(dir) && wait_for_end(qemu, limits.quit)) return {};
  if (auto sent = qemu.signal(SIGTERM); !sent) return sent;
  if (wait_for_end(qemu, limits.terminate)) return {};
  if (auto sent = qemu.signal(SIGKILL); !sent) return sent;
  return wait_for_end(qemu, limits.kill);
}

std::string describe_end(const fs::path& dir, const std::optional<ExitStatus>& status) {
  const auto console = last_lines(dir / vm_file::serial_log, 60);
  if (const std::string panic = said_on(console, "Kernel panic"); !panic.empty()) {
    return cat("the guest's kernel gave up: ", panic);
  }
  const std::string words = last_words(dir);
  if (!status || status->success()) {
    // The kernel's last words, which it says however quiet it is.
    if (!said_on(console, "reboot: Restarting system").empty()) {
      return "the guest restarted itself";
    }
    if (!said_on(console, "reboot: Power down").empty()) return "the guest powered off";
    // A kernel of another's making may have its console elsewhere.
    if (status && words.empty()) return "the guest powered off or restarted itself";
  }
  std::string how = "QEMU is gone";
  if (status) {
    how = status->signal != 0 ? cat("QEMU was killed by signal ", status->signal)
                              : cat("QEMU exited with ", status->code);
  }
  return words.empty() ? how : cat(how, ": ", words);
}

std::string last_console_lines(const fs::path& dir, std::size_t lines) {
  return join(last_lines(dir / vm_file::serial_log, lines), "\n");
}

}  // namespace fuse
