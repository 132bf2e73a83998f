#include <csignal>

#include "base/posix_host.h"
#include "guest/channel/client.h"
#include "tests/catch.h"
#include "tests/guest/agent_fixture.h"
#include "tests/guest/job_fixture.h"
#include "tests/guest/random.h"

// What is kept of a job: its log and its result, whatever happens to the agent.
namespace fuse {
namespace {

TEST_CASE("a log is read from any offset, and not from beyond its end") {
  AgentFixture agent;
  const auto client = agent.client();
  const std::string log = run(*client, {.script = "seq 1 20000"}).log;
  RandomBytes random(4);
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t offset = random.up_to(log.size());
    std::string rest;
    const auto range = client->read_log({.offset = offset}, [&](std::string_view bytes) {
      rest += bytes;
      return true;
    });
    REQUIRE(range);
    CHECK(range->begin == offset);
    CHECK(range->end == log.size());
    CHECK(rest == log.substr(offset));
  }
  CHECK(client->read_log({.offset = log.size() + 1}, [](std::string_view) { return true; })
            .error()
            .code == ErrorCode::invalid_argument);
}

TEST_CASE("a reader that has enough says so") {
  AgentFixture agent;
  const auto client = agent.client();
  REQUIRE(client->start_job("k", {.script = "yes"}));
  std::uint64_t seen = 0;
  const auto range = client->read_log({.follow = true}, [&](std::string_view bytes) {
    seen += bytes.size();
    return seen < 1'000'000;
  });
  REQUIRE(range);
  CHECK(range->end == seen);
  REQUIRE(client->stop_job(std::chrono::seconds(1)));
}

TEST_CASE("a job waits when its log is full, and loses nothing") {
  constexpr std::uint64_t limit = 1U << 20U;
  AgentFixture agent(limit);
  const auto client = agent.client();
  const auto reader = agent.root() / "content";
  std::string content(5'000'000, '\0');
  for (std::size_t i = 0; i < content.size(); ++i) content[i] = keyed_byte(9, i);
  REQUIRE(PosixHost().write_file(reader, content));
  REQUIRE(client->start_job("k", {.script = cat("cat ", reader.native(), "; exit 12")}));
  std::string log;
  std::uint64_t acknowledged = 0;
  while (true) {
    const auto job = client->job_status();
    REQUIRE(job);
    // What is in its pipe when it ends is taken beyond the limit.
    CHECK(job->status.log_bytes <= acknowledged + limit + (128U << 10U));
    const std::uint64_t before = log.size();
    const auto range = client->read_log({.offset = before, .follow = true, .acknowledge = true},
                                        [&](std::string_view bytes) {
                                          log += bytes;
                                          return log.size() - before < 300'000;
                                        });
    REQUIRE(range);
    REQUIRE(range->begin == before);
    acknowledged = log.size();
    if (job->status.state == JobState::exited && log.size() == job->status.log_bytes) break;
  }
  CHECK(log == content);
  CHECK(client->job_status()->status.exit_code == 12);
  // All of it was acknowledged, so nearly all of it is gone from the guest.
  const auto kept = PosixHost().list_dir(agent.root() / "var/lib/fuse/job/log");
  CHECK(kept.value().size() <= 2);
}

TEST_CASE("a job whose agent dies is lost, and what it printed is not") {
  AgentFixture agent;
  {
    const auto client = agent.client();
    REQUIRE(client->start_job("k", {.steps = {{"first", "true", ""}},
                                    .script = "echo printed; echo $$; exec sleep 1000"}));
    await_in_log(*client, "printed\n");
  }
  agent.kill();
  agent.start();
  const auto client = agent.client();
  const auto ended = follow(*client);
  CHECK(ended.status.state == JobState::lost);
  CHECK(ended.status.reason == "lost");
  CHECK_FALSE(ended.status.exit_code);
  REQUIRE(ended.log.starts_with("printed\n"));
  CHECK(client->start_job("other", {.script = "true"}).error().code == ErrorCode::conflict);
  if (const auto pid = parse_int(trim(ended.log.substr(8)))) {
    ::kill(static_cast<pid_t>(*pid), SIGKILL);
  }
}

TEST_CASE("the result of a job outlives its agent") {
  AgentFixture agent;
  run(*agent.client(), {.script = "echo out; exit 33"});
  agent.kill();
  agent.start();
  const auto client = agent.client();
  REQUIRE(client->hello().job);
  CHECK(client->hello().job->status.exit_code == 33);
  CHECK(client->hello().job->boot_id == client->hello().boot_id);
  const auto ended = follow(*client);
  CHECK(ended.log == "out\n");
  CHECK(ended.status.state == JobState::exited);
  CHECK(ended.status.exit_code == 33);
}

TEST_CASE("a shutdown ends the job and keeps its result") {
  AgentFixture agent;
  {
    const auto client = agent.client();
    REQUIRE(client->start_job("k", {.script = "trap '' TERM; echo ready; sleep 1000; exit 1"}));
    await_in_log(*client, "ready\n");
    REQUIRE(client->shutdown());
    REQUIRE(*agent.process().wait(std::chrono::seconds(60)));
  }
  agent.start();
  const auto ended = follow(*agent.client());
  CHECK(ended.status.state == JobState::exited);
  CHECK(ended.status.reason == "stopped");
  CHECK(ended.log == "ready\n");
}

TEST_CASE("a spec larger than the channel's credit arrives whole") {
  AgentFixture agent;
  const auto client = agent.client();
  std::string script;
  for (int i = 0; i < 40'000; ++i) script += cat(": line ", i, " of a long script\n");
  const auto ended = run(*client, {.script = script + "echo end\n"});
  CHECK(script.size() > 1'000'000);
  CHECK(ended.log == "end\n");
}

}  // namespace
}  // namespace fuse
