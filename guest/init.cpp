#include "guest/init.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/reboot.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/files.h"
#include "base/posix_host.h"
#include "base/text.h"
#include "guest/agent.h"
#include "guest/boot_options.h"
#include "guest/channel/names.h"
#include "guest/init_system.h"

namespace fuse {

namespace {

const char* const new_root = "/newroot";
// What must never reach a disk.
const char* const secrets = "/fuse";
constexpr std::string_view kept_executable = "/run/fuse/fuse";
// An agent that keeps failing cannot be helped.
constexpr int most_quick_failures = 10;
constexpr std::chrono::seconds quick(5);

void say(std::string_view line) {
  const std::string text = cat(line, "\n");
  // The kernel's console, even when ours is gone.
  const Fd console(::open("/dev/console", O_WRONLY | O_NOCTTY | O_CLOEXEC));
  (void)write_all(console.valid() ? console.get() : 1, text, "console");
}

[[noreturn]] void give_up(const Error& error) {
  say(cat("fuse init: ", error.message));
  ::sync();
  ::reboot(RB_POWER_OFF);
  // Without a power switch the machine may at least be restarted, which QEMU is
  // told to take for its end.
  ::reboot(RB_AUTOBOOT);
  while (true) ::pause();
}

void must(const Result<void>& outcome) {
  if (!outcome) give_up(outcome.error());
}

// Not worth a guest: said, and gone on without.
void should(const Result<void>& outcome) {
  if (!outcome) say(cat("fuse init: ", outcome.error().message));
}

// The program, in a place that the switch to the disk's root does not empty.
Result<void> keep_executable() {
  PosixHost host;
  const auto bytes = host.read_file("/proc/self/exe");
  if (!bytes) return bytes.error();
  const fs::path kept(kept_executable);
  if (auto made = host.make_dirs(kept.parent_path(), 0755); !made) return made;
  return host.replace_file(kept, *bytes, 0755);
}

// systemd leaves processes of root whose command line begins with an @ alone when
// it ends all others.
void mark_as_part_of_the_boot() {
  ::prctl(PR_SET_NAME, "fuse-agent", 0, 0, 0);
  const auto stat = PosixHost().read_file("/proc/self/stat");
  if (!stat) return;
  const std::size_t name_end = stat->rfind(')');
  const auto fields = split(name_end == std::string::npos ? "" : stat->substr(name_end + 2), ' ');
  // Field 48 of all, the address of the first argument.
  constexpr std::size_t arguments_after_name = 45;
  if (fields.size() <= arguments_after_name) return;
  const auto address = parse_int(fields[arguments_after_name]);
  if (address && *address > 0) {
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the kernel gives the address as a number
    *reinterpret_cast<char*>(static_cast<std::uintptr_t>(*address)) = '@';
  }
}

int run_agent() {
  ::setsid();
  AgentOptions options;
  options.owns_machine = true;
  std::error_code failure;
  if (fs::exists("/sys/fs/cgroup/cgroup.procs", failure)) options.cgroup = "/sys/fs/cgroup";
  options.on_ready = [] { say("fuse: guest ready"); };
  return run_guest_agent(options);
}

std::string how_ended(int status) {
  if (WIFSIGNALED(status)) return cat("signal ", WTERMSIG(status));
  return cat("code ", WEXITSTATUS(status));
}

pid_t start_agent() {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(run_agent());
  if (pid < 0) give_up(errno_error("start the agent", errno));
  return pid;
}

// Reaps all there is to reap, and starts the agent again when it ends.
[[noreturn]] void keep_agent_running() {
  int quick_failures = 0;
  auto started = std::chrono::steady_clock::now();
  pid_t agent = start_agent();
  while (true) {
    int status = 0;
    const pid_t ended = ::waitpid(-1, &status, 0);
    if (ended != agent) continue;
    const auto now = std::chrono::steady_clock::now();
    quick_failures = now - started < quick ? quick_failures + 1 : 0;
    if (quick_failures > most_quick_failures) {
      give_up({ErrorCode::internal, cat("the agent cannot run: ", how_ended(status))});
    }
    say(cat("fuse init: the agent ended with ", how_ended(status), " and is started again"));
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    started = std::chrono::steady_clock::now();
    agent = start_agent();
  }
}

// The process that keeps the agent, beside an init that is not ours.
void start_keeper() {
  const pid_t pid = ::fork();
  if (pid < 0) give_up(errno_error("start the agent", errno));
  if (pid != 0) return;
  ::setsid();
  mark_as_part_of_the_boot();
  keep_agent_running();
}

[[noreturn]] void become(const std::string& init) {
  start_keeper();
  std::array<char*, 2> argv = {const_cast<char*>(init.c_str()), nullptr};
  const char* const home = "HOME=/";
  const char* const term = "TERM=linux";
  std::array<char*, 3> environment = {const_cast<char*>(home), const_cast<char*>(term), nullptr};
  ::execve(init.c_str(), argv.data(), environment.data());
  give_up(errno_error(cat("start ", init), errno));
}

void enter_disk(const BootOptions& options) {
  must(mount_root(options.root, new_root));
  should(keep_executable());
  write_names(new_root, options);
  must(switch_root(new_root));
}

// A guest without a disk lives in its initramfs.
void settle_in_initramfs(const BootOptions& options) {
  PosixHost host;
  for (const char* dir : {"/root", "/var/lib", "/var/log"}) should(host.make_dirs(dir, 0755));
  ::chmod("/root", 0700);
  should(mount_tmpfs("/tmp", "mode=1777"));
  write_names("/", options);
  std::error_code failure;
  if (!fs::exists("/bin/busybox", failure) || fs::exists("/bin/sh", failure)) return;
  if (auto installer = host.spawn({.argv = {"/bin/busybox", "--install", "-s"}})) {
    (void)(*installer)->wait(std::chrono::seconds(10));
  }
}

[[noreturn]] void run_guest_init() {
  must(mount_kernel_filesystems());
  should(load_modules());
  const auto command_line = PosixHost().read_file("/proc/cmdline");
  if (!command_line) give_up(command_line.error());
  const auto options = parse_boot_options(*command_line);
  if (!options) give_up(options.error());
  set_hostname(options->hostname);
  should(configure_network(options->network));
  if (options->root.empty()) {
    settle_in_initramfs(*options);
  } else {
    enter_disk(*options);
  }
  must(mount_tmpfs(secrets, "mode=0700"));
  if (!options->init.empty()) become(options->init);
  keep_agent_running();
}

// Beside an init that knows nothing of fuse, which starts us again when we end: then
// what the earlier one kept in memory is still there.
int run_guest_service() {
  struct stat ours {};
  struct stat root {};
  const bool mounted =
      ::stat(secrets, &ours) == 0 && ::stat("/", &root) == 0 && ours.st_dev != root.st_dev;
  const auto ready = mounted ? Result<void>() : mount_tmpfs(secrets, "mode=0700");
  if (ready) return run_agent();
  say(cat("fuse guest: ", ready.error().message));
  return 1;
}

}  // namespace

std::optional<int> run_guest_part(std::span<const std::string> arguments) {
  if (arguments.empty()) return std::nullopt;
  const fs::path name = fs::path(arguments.front()).filename();
  if (name == guest_program_name) return run_guest_service();
  if (::getpid() != 1 || name != "init") return std::nullopt;
  run_guest_init();
}

}  // namespace fuse
