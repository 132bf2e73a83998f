#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/posix_host.h"
#include "base/posix_process.h"
#include "base/text.h"
#include "tests/base/folder.h"
#include "tests/catch.h"

namespace fuse {
namespace {

using std::chrono::milliseconds;
constexpr milliseconds watchdog = std::chrono::seconds(60);

// Runs a script with its output in a file, and gives what it printed.
std::string printed_by(SpawnSpec spec, ExitStatus* status = nullptr) {
  const Folder folder;
  const fs::path file = folder.path() / "out";
  const Fd out(::open(file.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0600));
  spec.stdout_fd = out.get();
  auto process = spawn_process(spec);
  if (!process) return process.error().message;
  const auto ended = (*process)->wait(watchdog);
  REQUIRE(ended);
  REQUIRE(*ended);
  if (status != nullptr) *status = **ended;
  return *PosixHost().read_file(file);
}

std::unique_ptr<Process> start(std::vector<std::string> argv) {
  auto process = spawn_process({.argv = std::move(argv)});
  REQUIRE(process);
  return *std::move(process);
}

bool is_running(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

// Whether a process that is not waited for by us is gone, a zombie included.
bool is_gone(pid_t pid) {
  const auto stat = PosixHost().read_file(cat("/proc/", pid, "/stat"));
  return !stat || stat->find(") Z ") != std::string::npos;
}

TEST_CASE("a process ends with its code or its signal") {
  const auto code = start({"sh", "-c", "exit 7"});
  const auto ended = code->wait(watchdog);
  REQUIRE(ended);
  REQUIRE(*ended);
  CHECK((*ended)->code == 7);
  CHECK((*ended)->shell_code() == 7);
  CHECK_FALSE((*ended)->success());
  // Asked again, it says the same.
  CHECK((*code->wait(milliseconds(0)))->code == 7);

  const auto killed = start({"sleep", "1000"});
  CHECK_FALSE(*killed->wait(milliseconds(0)));
  REQUIRE(killed->signal(SIGTERM));
  const auto status = killed->wait(watchdog);
  REQUIRE(*status);
  CHECK((*status)->signal == SIGTERM);
  CHECK((*status)->shell_code() == 128 + SIGTERM);
  CHECK(killed->signal(SIGTERM));
}

TEST_CASE("arguments, environment and folder arrive as they are") {
  const Folder folder;
  CHECK(printed_by({.argv = {"printf", "%s|", "a b", "$HOME", "'", ""}}) == "a b|$HOME|'||");
  CHECK(printed_by({.argv = {"/usr/bin/env"}, .environment = std::vector<std::string>{"A=1"}}) ==
        "A=1\n");
  CHECK(printed_by({.argv = {"/bin/pwd"}, .directory = folder.path()}) ==
        cat(fs::canonical(folder.path()).native(), "\n"));
}

TEST_CASE("a program that is not there is an error that names it") {
  const auto process = spawn_process({.argv = {"fuse-no-such-program"}});
  REQUIRE_FALSE(process);
  CHECK(process.error().code == ErrorCode::not_found);
  CHECK(process.error().message == "start fuse-no-such-program: No such file or directory");
  CHECK_FALSE(spawn_process({}));
}

TEST_CASE("no descriptor but the three named ones is inherited") {
  const Fd left_open(::open("/dev/null", O_RDONLY));  // without close-on-exec, on purpose
  REQUIRE(left_open.get() > 2);
  // ls has one open itself: the folder it lists.
  CHECK(printed_by({.argv = {"ls", "/proc/self/fd"}}) == "0\n1\n2\n3\n");
  // Named descriptors may be any, also each other's numbers.
  std::array<int, 2> ends{};
  REQUIRE(::pipe2(ends.data(), O_CLOEXEC) == 0);
  const Fd read(ends[0]);
  Fd write(ends[1]);
  auto both = spawn_process({.argv = {"sh", "-c", "echo out; echo err >&2"},
                             .stdout_fd = write.get(),
                             .stderr_fd = write.get()});
  REQUIRE(both);
  write.reset();
  std::array<char, 64> buffer{};
  std::string got;
  for (ssize_t n = 0; (n = ::read(read.get(), buffer.data(), buffer.size())) > 0;) {
    got.append(buffer.data(), static_cast<std::size_t>(n));
  }
  CHECK(got == "out\nerr\n");
}

TEST_CASE("a child starts with no signal blocked or ignored") {
  sigset_t set{};
  sigset_t before{};
  ::sigemptyset(&set);
  ::sigaddset(&set, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &set, &before);
  const auto ignored = ::signal(SIGPIPE, SIG_IGN);
  const std::string status = printed_by({.argv = {"cat", "/proc/self/status"}});
  ::signal(SIGPIPE, ignored);
  ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // The two above 31 are the C library's own.
  const auto standard = [&](const std::string& name) {
    const std::size_t at = status.find(name + ":\t");
    REQUIRE(at != std::string::npos);
    return std::stoull(status.substr(at + name.size() + 2, 16), nullptr, 16) & 0x7FFFFFFFU;
  };
  CHECK(standard("SigBlk") == 0);
  CHECK(standard("SigIgn") == 0);
}

TEST_CASE("a new session is one") {
  const auto process = spawn_process({.argv = {"sleep", "1000"}, .new_session = true});
  REQUIRE(process);
  CHECK(::getsid((*process)->pid()) == (*process)->pid());
}

TEST_CASE("a dropped handle kills and reaps, a released one does not") {
  pid_t pid = 0;
  {
    const auto dropped = start({"sleep", "1000"});
    pid = dropped->pid();
    CHECK(is_running(pid));
  }
  CHECK_FALSE(is_running(pid));

  std::uint64_t started = 0;
  {
    const auto released = start({"sleep", "1000"});
    released->release();
    pid = released->pid();
    started = released->start_time();
  }
  CHECK(is_running(pid));
  const auto adopted = adopt_process(pid, started);
  REQUIRE(adopted);
  REQUIRE((*adopted)->signal(SIGKILL));
  const auto status = (*adopted)->wait(watchdog);
  REQUIRE(status);
  REQUIRE(*status);
  // It is our child all the same: no zombie stays behind.
  CHECK((*status)->signal == SIGKILL);
  CHECK_FALSE(is_running(pid));
}

TEST_CASE("a released process that is still held is reaped with its status") {
  const auto process = start({"sh", "-c", "exit 5"});
  process->release();
  CHECK((*process->wait(watchdog))->code == 5);
  CHECK_FALSE(is_running(process->pid()));
}

TEST_CASE("a process that is not our child is adopted, waited for and not killed") {
  // The shell starts it in the background and ends, so it gets another parent.
  const std::string text =
      printed_by({.argv = {"sh", "-c", "sleep 1000 >/dev/null 2>&1 & echo $!"}});
  const auto number = parse_int(trim(text));
  REQUIRE(number);
  const auto pid = static_cast<pid_t>(*number);
  const auto started = process_start_time(pid);
  REQUIRE(started);
  {
    const auto adopted = adopt_process(pid, *started);
    REQUIRE(adopted);
    CHECK((*adopted)->pid() == pid);
    CHECK((*adopted)->start_time() == *started);
    CHECK_FALSE(*(*adopted)->wait(milliseconds(0)));
  }
  CHECK_FALSE(is_gone(pid));
  const auto again = adopt_process(pid, *started);
  REQUIRE(again);
  REQUIRE((*again)->signal(SIGKILL));
  const auto status = (*again)->wait(watchdog);
  REQUIRE(status);
  REQUIRE(*status);
  CHECK((*status)->code == 0);
  CHECK(is_gone(pid));
}

TEST_CASE("a recycled pid is not adopted") {
  const auto process = start({"sleep", "1000"});
  const auto other = adopt_process(process->pid(), process->start_time() + 1);
  REQUIRE_FALSE(other);
  CHECK(other.error().code == ErrorCode::not_found);

  REQUIRE(process->signal(SIGKILL));
  REQUIRE(*process->wait(watchdog));
  const auto gone = adopt_process(process->pid(), process->start_time());
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code == ErrorCode::not_found);
  CHECK_FALSE(adopt_process(0, 0));
  CHECK_FALSE(adopt_process(-1, 0));
}

TEST_CASE("a start time is read past any name a program gives itself") {
  const Folder folder;
  const fs::path program = folder.path() / "a) b (c";
  fs::copy_file(fs::canonical("/bin/sleep"), program);
  const auto process = spawn_process({.argv = {program.native(), "1000"}});
  if (!process) FAIL(process.error().message);
  CHECK(*process_start_time((*process)->pid()) == (*process)->start_time());
  CHECK((*process)->start_time() >= *process_start_time(::getpid()));
}

}  // namespace
}  // namespace fuse
