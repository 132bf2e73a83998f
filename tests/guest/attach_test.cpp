#include <csignal>

#include "guest/channel/client.h"
#include "tests/catch.h"
#include "tests/guest/agent_fixture.h"

namespace fuse {
namespace {

struct Attached {
  std::string out{};
  std::string err{};
  std::string exit{};
};

// Reads to the session's end, or until the output contains `until`.
void read_more(AttachSession& session, Attached& into, std::string_view until = {}) {
  while (until.empty() || into.out.find(until) == std::string::npos) {
    auto frame = session.read();
    REQUIRE(frame);
    if (!*frame) return;
    if ((*frame)->type == AttachFrameType::stdout_bytes) into.out += (*frame)->payload;
    if ((*frame)->type == AttachFrameType::stderr_bytes) into.err += (*frame)->payload;
    if ((*frame)->type == AttachFrameType::exit) into.exit = (*frame)->payload;
  }
}

std::unique_ptr<AttachSession> attach(GuestClient& client, const AttachRequest& request) {
  auto session = client.open_attach(request);
  REQUIRE(session);
  return *std::move(session);
}

void type(AttachSession& session, std::string_view text) {
  REQUIRE(session.write({AttachFrameType::stdin_bytes, std::string(text)}));
}

TEST_CASE("a session without a terminal has two outputs and an input that ends") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto session =
      attach(*client, {.cmd = {"sh", "-c", "echo err >&2; cat; exit 9"}, .tty = false});
  type(*session, "some input\n");
  type(*session, "");
  Attached got;
  read_more(*session, got);
  CHECK(got.out == "some input\n");
  CHECK(got.err == "err\n");
  CHECK(got.exit == R"({"exit_code":9})");
}

TEST_CASE("a session carries more than any buffer holds, both ways") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto session = attach(*client, {.cmd = {"cat"}, .tty = false});
  const std::string text(3'000'000, 'q');
  std::thread typist([&] {
    for (std::size_t at = 0; at < text.size(); at += 100'000) {
      if (!session->write({AttachFrameType::stdin_bytes, text.substr(at, 100'000)})) return;
    }
    (void)session->write({AttachFrameType::stdin_bytes, ""});
  });
  Attached got;
  read_more(*session, got);
  typist.join();
  CHECK(got.out == text);
  CHECK(got.exit == R"({"exit_code":0})");
}

TEST_CASE("a session with a terminal has its size, and is told of a new one") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto session = attach(*client, {.cmd = {"/bin/sh"}, .tty = true, .rows = 33, .cols = 77});
  Attached got;
  type(*session, "stty -echo; tty -s && stty size\n");
  read_more(*session, got, "33 77\r\n");
  REQUIRE(session->write({AttachFrameType::resize, R"({"rows":44,"cols":0})"}));
  REQUIRE(session->write({AttachFrameType::resize, R"({"rows":55,"cols":99})"}));
  type(*session, "stty size; echo $TERM\n");
  read_more(*session, got, "55 99\r\nxterm\r\n");
  type(*session, "exit 6\n");
  read_more(*session, got);
  CHECK(got.err.empty());
  CHECK(got.exit == R"({"exit_code":6})");
}

TEST_CASE("a terminal's interrupt key reaches what runs on it") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto session =
      attach(*client, {.cmd = {"sh", "-c", "echo ready; exec sleep 1000"}, .tty = true});
  Attached got;
  read_more(*session, got, "ready");
  type(*session, "\x03");
  read_more(*session, got);
  CHECK(got.exit == cat(R"({"exit_code":)", 128 + SIGINT, "}"));
}

TEST_CASE("the end of input ends what reads a terminal") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto session = attach(*client, {.cmd = {"cat"}, .tty = true});
  type(*session, "line\n");
  Attached got;
  read_more(*session, got, "line\r\nline\r\n");
  type(*session, "");
  read_more(*session, got);
  CHECK(got.exit == R"({"exit_code":0})");
}

TEST_CASE("all that a terminal's process has printed arrives before its exit") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto session = attach(
      *client, {.cmd = {"sh", "-c", "stty -opost; yes 0123456789 | head -c 400000"}, .tty = true});
  Attached got;
  read_more(*session, got);
  CHECK(got.out.size() == 400'000);
  CHECK(got.exit == R"({"exit_code":0})");
}

TEST_CASE("without a command a session is a login shell") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto session = attach(*client, {.tty = false});
  type(*session, "echo $0 $HOME\nexit 4\n");
  Attached got;
  read_more(*session, got);
  // The root of this agent has no passwd and no bash.
  CHECK(got.out == "-sh /root\n");
  CHECK(got.exit == R"({"exit_code":4})");
}

TEST_CASE("closing a session kills its process and wakes its reader") {
  AgentFixture agent;
  const auto client = agent.client();
  for (const bool tty : {false, true}) {
    const auto session =
        attach(*client, {.cmd = {"sh", "-c", "echo $$; exec sleep 1000"}, .tty = tty});
    Attached got;
    read_more(*session, got, "\n");
    std::thread closer([&] { session->close(); });
    const auto last = session->read();
    closer.join();
    REQUIRE(last);
    CHECK_FALSE(*last);
    wait_until_gone(static_cast<pid_t>(parse_int(trim(got.out)).value()));
  }
}

TEST_CASE("a session that nobody reads holds up no other call") {
  AgentFixture agent;
  const auto client = agent.client();
  const auto session = attach(*client, {.cmd = {"yes"}, .tty = false});
  for (int i = 0; i < 20; ++i) {
    const auto result = client->exec({.argv = {"head", "-c", "100000", "/dev/zero"}});
    REQUIRE(result);
    CHECK(result->out.size() == 100'000);
  }
}

}  // namespace
}  // namespace fuse
