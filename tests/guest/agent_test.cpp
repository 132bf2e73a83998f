#include "guest/agent.h"

#include <sys/stat.h>

#include <csignal>
#include <stop_token>
#include <thread>

#include "base/posix_host.h"
#include "guest/channel/client.h"
#include "tests/catch.h"
#include "tests/guest/agent_fixture.h"
#include "tests/guest/random.h"

namespace fuse {
namespace {

std::string keyed(std::uint32_t key, std::size_t size) {
  std::string out(size, '\0');
  for (std::size_t i = 0; i < size; ++i) out[i] = keyed_byte(key, i);
  return out;
}

mode_t mode_of(const fs::path& path) {
  struct stat found {};
  REQUIRE(::stat(path.c_str(), &found) == 0);
  return found.st_mode & 07777U;
}

std::string contents(const fs::path& path) {
  return PosixHost().read_file(path).value();
}

TEST_CASE("the agent says who it is") {
  AgentFixture agent;
  const auto client = agent.client();
  const GuestHello& hello = client->hello();
  CHECK(hello.protocol == guest_protocol);
  CHECK_FALSE(hello.version.empty());
  CHECK(hello.boot_id == trim(contents("/proc/sys/kernel/random/boot_id")));
  CHECK(hello.uptime.count() > 0);
  CHECK_FALSE(hello.job);
  CHECK(client->alive());
}

TEST_CASE("a command's outputs come apart, with its code") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto result = shell(*client, "echo to-out; echo to-err >&2; exit 41");
  CHECK(result.out == "to-out\n");
  CHECK(result.err == "to-err\n");
  CHECK(result.status.code == 41);
  CHECK(result.status.signal == 0);
  CHECK_FALSE(result.timed_out);
  CHECK_FALSE(result.truncated);
}

TEST_CASE("a command that a signal ends says so") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto result = shell(*client, "kill -USR1 $$");
  CHECK(result.status.signal == SIGUSR1);
  CHECK(result.status.shell_code() == 128 + SIGUSR1);
}

TEST_CASE("a command that cannot be started ends as in a shell") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto missing = exec(*client, {"no-such-command"});
  CHECK(missing.status.code == 127);
  CHECK(missing.err == "fuse: cannot start no-such-command: No such file or directory\n");
  const auto folder = exec(*client, {"/usr"});
  CHECK(folder.status.code == 126);
  CHECK(folder.err == "fuse: cannot start /usr: Permission denied\n");
}

TEST_CASE("a command has the guest's environment with its own over it, and its folder") {
  AgentFixture agent;
  const auto client = agent.client();
  fs::create_directories(agent.root() / "work/here");
  const auto result = client->exec({.argv = {"/bin/sh", "-c", "env | sort; pwd"},
                                    .env = {{"MINE", "a b"}, {"TZ", "CET"}},
                                    .workdir = "/work/here"});
  REQUIRE(result);
  CHECK(result->out == cat("HOME=/root\nLOGNAME=root\nMINE=a b\n"
                           "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
                           "PWD=",
                           (agent.root() / "work/here").native(),
                           "\nPYTHONUNBUFFERED=1\nTZ=CET\nUSER=root\n",
                           (agent.root() / "work/here").native(), "\n"));
}

TEST_CASE("input goes through a command and comes back byte for byte") {
  AgentFixture agent;
  const auto client = agent.client();
  const std::string bytes = keyed(1, 3'000'000) + std::string(sync_mark) + "end";
  const auto result = client->exec({.argv = {"cat"}, .input = bytes});
  REQUIRE(result);
  CHECK(result->out == bytes);
  CHECK(result->status.success());
}

TEST_CASE("input that a command does not read is no obstacle") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto result = client->exec(
      {.argv = {"sh", "-c", "exec <&-; echo done; exit 3"}, .input = std::string(2'000'000, 'x')});
  REQUIRE(result);
  CHECK(result->out == "done\n");
  CHECK(result->status.code == 3);
}

TEST_CASE("more output than is wanted is dropped, and said to be") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto result =
      client->exec({.argv = {"head", "-c", "1000000", "/dev/zero"}, .most_output = 1000});
  REQUIRE(result);
  CHECK(result->out == std::string(1000, '\0'));
  CHECK(result->truncated);
  CHECK(result->status.success());
}

TEST_CASE("a command that takes too long is killed with its children") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto result = client->exec({.argv = {"sh", "-c", "sleep 1000 & echo $!; wait"},
                                    .timeout = std::chrono::milliseconds(700)});
  REQUIRE(result);
  CHECK(result->timed_out);
  CHECK(result->status.signal == SIGKILL);
  wait_until_gone(static_cast<pid_t>(parse_int(trim(result->out)).value()));
}

TEST_CASE("a daemon that keeps a command's pipes does not keep the command") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto result = shell(*client, "sleep 1000 & echo $!");
  CHECK(result.status.success());
  ::kill(static_cast<pid_t>(parse_int(trim(result.out)).value()), SIGKILL);
}

TEST_CASE("an interrupted call ends the command") {
  AgentFixture agent;
  const auto client = agent.client();
  const fs::path mark = agent.root() / "started";
  std::stop_source stop;
  std::thread interrupter([&] {
    while (!fs::exists(mark)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    stop.request_stop();
  });
  const auto result =
      client->exec({.argv = {"sh", "-c",
                             cat("echo $$ > ", mark.native(), ".new; mv ", mark.native(), ".new ",
                                 mark.native(), "; exec sleep 1000")}},
                   stop.get_token());
  interrupter.join();
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::unavailable);
  wait_until_gone(static_cast<pid_t>(parse_int(trim(contents(mark))).value()));
  CHECK(shell(*client, "echo on").out == "on\n");
}

TEST_CASE("many commands at once do not mix up") {
  AgentFixture agent;
  const auto client = agent.client();
  std::vector<std::thread> threads;
  std::atomic<int> wrong = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&, i] {
      const std::string mine = keyed(static_cast<std::uint32_t>(i), 200'000);
      const auto result = client->exec({.argv = {"cat"}, .input = mine});
      if (!result || result->out != mine) ++wrong;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
}

TEST_CASE("a command line longer than a frame arrives whole") {
  AgentFixture agent;
  const auto client = agent.client();
  const std::string half(120'000, 'a');
  const auto result = exec(*client, {"printf", "%s%s%s", half, half, half});
  CHECK(result.out == half + half + half);
}

TEST_CASE("an upload is a file with parents and modes") {
  AgentFixture agent;
  const auto client = agent.client();
  const std::string bytes = keyed(2, 1'500'000) + std::string(sync_mark.substr(0, 5));
  REQUIRE(client->upload({.path = "/data/deep/file.bin", .bytes = bytes}));
  CHECK(contents(agent.root() / "data/deep/file.bin") == bytes);
  CHECK(mode_of(agent.root() / "data/deep/file.bin") == 0644);
  CHECK(mode_of(agent.root() / "data/deep") == 0755);
  REQUIRE(client->upload({.path = "/data/run.sh", .bytes = "", .mode = 0755}));
  CHECK(mode_of(agent.root() / "data/run.sh") == 0755);
  CHECK(contents(agent.root() / "data/run.sh").empty());
}

TEST_CASE("what is under /fuse is for root alone, and only what is") {
  AgentFixture agent;
  const auto client = agent.client();
  REQUIRE(client->upload({.path = "/fuse/tls/key.pem", .bytes = "k"}));
  CHECK(mode_of(agent.root() / "fuse/tls/key.pem") == 0600);
  CHECK(mode_of(agent.root() / "fuse/tls") == 0700);
  REQUIRE(client->upload({.path = "/fuse/../etc/x", .bytes = "x"}));
  CHECK(mode_of(agent.root() / "etc/x") == 0644);
}

TEST_CASE("an upload replaces a file at once, and leaves nothing else behind") {
  AgentFixture agent;
  const auto client = agent.client();
  REQUIRE(client->upload({.path = "/d/f", .bytes = "old"}));
  REQUIRE(client->upload({.path = "/d/f", .bytes = "new", .mode = 0600}));
  CHECK(contents(agent.root() / "d/f") == "new");
  CHECK(mode_of(agent.root() / "d/f") == 0600);
  CHECK(PosixHost().list_dir(agent.root() / "d").value() == std::vector<std::string>{"f"});
}

TEST_CASE("an upload to what cannot be a file is refused") {
  AgentFixture agent;
  const auto client = agent.client();
  fs::create_directories(agent.root() / "folder");
  CHECK(client->upload({.path = "/folder", .bytes = "x"}).error().code == ErrorCode::conflict);
  CHECK(client->upload({.path = "relative", .bytes = "x"}).error().code ==
        ErrorCode::invalid_argument);
  CHECK(client->upload({.path = "/ends/in/", .bytes = "x"}).error().code ==
        ErrorCode::invalid_argument);
  REQUIRE(client->upload({.path = "/file", .bytes = "x"}));
  CHECK_FALSE(client->upload({.path = "/file/below", .bytes = std::string(600'000, 'x')}));
  CHECK(shell(*client, "echo on").out == "on\n");
}

TEST_CASE("an agent that is told to shut down answers, and ends") {
  AgentFixture agent;
  const auto client = agent.client();
  REQUIRE(client->shutdown());
  const auto ended = agent.process().wait(std::chrono::seconds(60));
  REQUIRE(ended);
  REQUIRE(*ended);
  CHECK((*ended)->success());
}

TEST_CASE("an agent's end is unreachable to the calls that wait") {
  AgentFixture agent;
  const auto client = agent.client();
  const fs::path mark = agent.root() / "started";
  std::thread killer([&] {
    while (!fs::exists(mark)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
    agent.kill();
  });
  const auto result =
      client->exec({.argv = {"sh", "-c", cat("touch ", mark.native(), "; sleep 1000")}});
  killer.join();
  REQUIRE_FALSE(result);
  CHECK(result.error().code == ErrorCode::unreachable);
  CHECK_FALSE(client->alive());
  CHECK(client->job_status().error().code == ErrorCode::unreachable);
  agent.start();
  CHECK(shell(*agent.client(), "echo again").out == "again\n");
}

TEST_CASE("the clock of a machine that is not the agent's stays") {
  AgentFixture agent;
  CHECK(agent.client()->set_clock(WallTime{}));
}

}  // namespace
}  // namespace fuse
