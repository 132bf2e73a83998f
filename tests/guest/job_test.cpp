#include <csignal>
#include <random>

#include "base/ids.h"
#include "base/posix_host.h"
#include "guest/channel/client.h"
#include "tests/catch.h"
#include "tests/guest/agent_fixture.h"
#include "tests/guest/job_fixture.h"

namespace fuse {
namespace {

TEST_CASE("a job runs its steps and then its script, each in its folder") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto ended = run(*client, {.steps = {{"one", "pwd; echo 1", "/a/b"}, {"two", "pwd", ""}},
                                   .script = "pwd\necho to-err >&2\necho \"$VALUE\"\n",
                                   .env = {{"VALUE", "it's"}},
                                   .workdir = "/a"});
  const std::string root = agent.root().native();
  CHECK(ended.log == cat(root, "/a/b\n1\n", root, "\n", root, "/a\nto-err\nit's\n"));
  CHECK(ended.status.state == JobState::exited);
  CHECK(ended.status.phase == JobPhase::done);
  CHECK(ended.status.steps == 2);
  CHECK(ended.status.step == 2);
  CHECK(ended.status.exit_code == 0);
  CHECK_FALSE(ended.status.signal);
  CHECK(ended.status.reason == "exited");
  CHECK(parse_rfc3339(ended.status.started_at));
  CHECK(parse_rfc3339(ended.status.finished_at));
}

TEST_CASE("a job of steps alone ends with the last of them") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto ended = run(*client, {.steps = {{"one", "echo a", ""}, {"two", "echo b", ""}}});
  CHECK(ended.log == "a\nb\n");
  CHECK(ended.status.exit_code == 0);
  CHECK(ended.status.phase == JobPhase::done);
}

TEST_CASE("a job's exit code is its script's") {
  std::random_device device;
  for (int round = 0; round < 5; ++round) {
    AgentFixture agent;
    const auto client = agent.client();
    const int code = std::uniform_int_distribution<int>(1, 255)(device);
    const auto ended = run(*client, {.script = cat("exit ", code)});
    CHECK(ended.status.exit_code == code);
    CHECK_FALSE(ended.status.signal);
    CHECK(ended.status.reason == "exited");
  }
}

TEST_CASE("a job that a signal ends says which") {
  for (const int number : {SIGKILL, SIGSEGV, SIGTERM, SIGUSR2}) {
    AgentFixture agent;
    const auto client = agent.client();
    const auto ended = run(*client, {.script = cat("kill -", number, " $$")});
    CHECK(ended.status.exit_code == 128 + number);
    CHECK(ended.status.signal == number);
    CHECK(ended.status.reason == "exited");
  }
}

TEST_CASE("a step that fails ends the job in the build") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto ended = run(*client, {.steps = {{"first", "echo 1", ""},
                                             {"second", "echo 2; exit 7", ""},
                                             {"third", "echo 3", ""}},
                                   .script = "echo run"});
  CHECK(ended.log == "1\n2\n");
  CHECK(ended.status.phase == JobPhase::build);
  CHECK(ended.status.step == 2);
  CHECK(ended.status.step_name == "second");
  CHECK(ended.status.exit_code == 7);
}

TEST_CASE("a job's folder that cannot be is its end, and said in its log") {
  AgentFixture agent;
  const auto client = agent.client();
  PosixHost host;
  REQUIRE(host.write_file(agent.root() / "file", ""));
  const auto ended = run(*client, {.script = "echo never", .workdir = "/file/below"});
  CHECK(ended.status.exit_code == 126);
  CHECK(ended.log.starts_with("fuse: cannot start "));
}

TEST_CASE("a job's environment is on no disk") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto ended =
      run(*client, {.script = cat("[ ${#SECRET} = 24 ] || exit 3\n", "grep -rqF \"$SECRET\" ",
                                  agent.root().native(), " && exit 4\nexit 5\n"),
                    .env = {{"SECRET", random_hex(12)}}});
  CHECK(ended.status.exit_code == 5);
}

TEST_CASE("a job that is stopped has its grace") {
  AgentFixture agent;
  const auto client = agent.client();
  REQUIRE(client->start_job("k", {.script = "trap 'echo bye; exit 3' TERM\necho ready\n"
                                            "while :; do sleep 0.02; done\n"}));
  await_in_log(*client, "ready\n");
  REQUIRE(client->stop_job(std::chrono::seconds(600)));
  const auto ended = follow(*client);
  // The shell may say itself that its sleep was terminated.
  CHECK(ended.log.ends_with("\nbye\n"));
  CHECK(ended.status.reason == "stopped");
  CHECK(ended.status.exit_code == 3);
  // Once more is no mistake.
  CHECK(client->stop_job());
}

TEST_CASE("what a stopped job's shell leaves behind has the grace too") {
  AgentFixture agent;
  const auto client = agent.client();
  // The outer shell dies of TERM at once; the inner one saves its work first.
  REQUIRE(
      client->start_job("k", {.script = "sh -c 'trap \"sleep 0.3; echo saved; exit\" TERM\n"
                                        "echo ready\nwhile :; do sleep 0.02; done'\nexit 0\n"}));
  await_in_log(*client, "ready\n");
  REQUIRE(client->stop_job(std::chrono::seconds(600)));
  const auto ended = follow(*client);
  CHECK(ended.log.ends_with("\nsaved\n"));
  CHECK(ended.status.signal == SIGTERM);
  CHECK(ended.status.reason == "stopped");
}

TEST_CASE("a job that ignores TERM is killed after the grace") {
  AgentFixture agent;
  const auto client = agent.client();
  REQUIRE(client->start_job(
      "k", {.script = "trap '' TERM\necho ready\nwhile :; do sleep 0.02; done\n"}));
  await_in_log(*client, "ready\n");
  REQUIRE(client->stop_job(std::chrono::seconds(1)));
  const auto ended = follow(*client);
  CHECK(ended.status.signal == SIGKILL);
  CHECK(ended.status.exit_code == 137);
  CHECK(ended.status.reason == "stopped");
}

TEST_CASE("a second stop can shorten the first one's grace") {
  AgentFixture agent;
  const auto client = agent.client();
  REQUIRE(client->start_job(
      "k", {.script = "trap '' TERM\necho ready\nwhile :; do sleep 0.02; done\n"}));
  await_in_log(*client, "ready\n");
  REQUIRE(client->stop_job(std::chrono::seconds(3600)));
  REQUIRE(client->stop_job(std::chrono::seconds(1)));
  CHECK(follow(*client).status.signal == SIGKILL);
}

TEST_CASE("a job that takes too long is stopped for that") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto ended = run(*client, {.script = "echo started; sleep 1000", .timeout_seconds = 1});
  CHECK(ended.log == "started\n");
  CHECK(ended.status.reason == "timeout");
  CHECK(ended.status.exit_code == 143);
}

TEST_CASE("a build that takes too long is stopped in the build") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto ended = run(*client, {.steps = {{"slow", "trap '' TERM; sleep 1000", ""}},
                                   .timeout_seconds = 1,
                                   .grace_seconds = 1});
  CHECK(ended.status.reason == "timeout");
  CHECK(ended.status.signal == SIGKILL);
  CHECK(ended.status.phase == JobPhase::build);
  CHECK(ended.status.step == 1);
}

TEST_CASE("daemons that a job leaves end with it") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto ended = run(*client, {.steps = {{"daemon", "sleep 1000 & echo $!", ""}},
                                   .script = "sleep 1000 & echo $!; exit 8"});
  CHECK(ended.status.exit_code == 8);
  const auto lines = split(ended.log, '\n');
  REQUIRE(lines.size() == 3);
  wait_until_gone(static_cast<pid_t>(parse_int(lines[0]).value()));
  wait_until_gone(static_cast<pid_t>(parse_int(lines[1]).value()));
}

TEST_CASE("a daemon of a step serves the script") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto ended = run(*client, {.steps = {{"daemon", "sleep 1000 & echo $! > pid", "/w"}},
                                   .script = "kill -0 $(cat pid) && echo alive",
                                   .workdir = "/w"});
  CHECK(ended.log == "alive\n");
}

TEST_CASE("a daemon in another session that keeps the output does not keep the job") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto ended = run(*client, {.script = "setsid sleep 1000 & echo $!; exit 2"});
  CHECK(ended.status.exit_code == 2);
  ::kill(static_cast<pid_t>(parse_int(trim(ended.log)).value()), SIGKILL);
}

TEST_CASE("a job may close its output") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto ended = run(*client, {.script = "echo a; exec >&- 2>&-; echo b; exit 5"});
  CHECK(ended.log == "a\n");
  CHECK(ended.status.exit_code == 5);
}

TEST_CASE("a guest has one job, and a retry of it is the same one") {
  AgentFixture agent;
  auto client = agent.client();
  CHECK(client->job_status().error().code == ErrorCode::not_found);
  CHECK(client->stop_job().error().code == ErrorCode::not_found);
  const auto ignore = [](std::string_view) { return true; };
  CHECK(client->read_log({}, ignore).error().code == ErrorCode::not_found);
  CHECK(client->start_job("k", {}).error().code == ErrorCode::invalid_argument);
  CHECK(client->start_job("k", {.script = "x", .timeout_seconds = -1}).error().code ==
        ErrorCode::invalid_argument);
  CHECK(client->start_job("k", {.script = "x", .env = {{"A=B", "x"}}}).error().code ==
        ErrorCode::invalid_argument);

  REQUIRE(client->start_job("k", {.script = "echo once"}));
  CHECK(client->start_job("k", {.script = "echo once"}));
  CHECK(client->start_job("other", {.script = "echo twice"}).error().code == ErrorCode::conflict);
  CHECK(client->start_job("", {.script = "echo twice"}).error().code == ErrorCode::conflict);
  CHECK(follow(*client).log == "once\n");
  CHECK(client->start_job("k", {.script = "echo once"}));
  CHECK(client->start_job("other", {.script = "echo twice"}).error().code == ErrorCode::conflict);
  CHECK(follow(*client).log == "once\n");
  client.reset();
  client = agent.client();
  REQUIRE(client->hello().job);
  CHECK(client->hello().job->key == "k");
}

}  // namespace
}  // namespace fuse
