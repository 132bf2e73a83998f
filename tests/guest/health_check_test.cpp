#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/json_reader.h"
#include "base/posix_host.h"
#include "orchestrator/api/json.h"
#include "tests/guest/agent_fixture.h"

namespace fuse {
namespace {

// Answers every connection with `answer`, on a port of its own.
class LittleServer {
 public:
  LittleServer() : fd_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    REQUIRE(::bind(fd_.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0);
    REQUIRE(::listen(fd_.get(), 16) == 0);
    socklen_t size = sizeof address;
    ::getsockname(fd_.get(), reinterpret_cast<sockaddr*>(&address), &size);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  LittleServer(const LittleServer&) = delete;
  LittleServer& operator=(const LittleServer&) = delete;
  ~LittleServer() {
    ::shutdown(fd_.get(), SHUT_RDWR);
    thread_.join();
  }
  [[nodiscard]] int port() const { return port_; }
  std::atomic<int> status{200};
  std::atomic<bool> silent{false};
  std::atomic<int> requests{0};

 private:
  void serve() {
    std::vector<Fd> kept;
    while (true) {
      Fd connection(::accept(fd_.get(), nullptr, nullptr));
      if (!connection.valid()) return;
      char buffer[4096] = {};
      const ssize_t got = ::recv(connection.get(), buffer, sizeof buffer, 0);
      if (got > 0) ++requests;
      if (silent) {
        kept.push_back(std::move(connection));
        continue;
      }
      const std::string answer =
          cat("HTTP/1.1 ", status.load(), " Said\r\nConnection: close\r\n\r\n",
              std::string(100'000, 'x'));
      (void)!::send(connection.get(), answer.data(), answer.size(), MSG_NOSIGNAL);
    }
  }

  Fd fd_;
  int port_ = 0;
  std::thread thread_{};
};

struct Checked {
  AgentFixture agent{};
  std::unique_ptr<GuestClient> client = agent.client();

  void begin(const std::string& check) {
    REQUIRE(client->upload({.path = "/fuse/healthcheck.json", .bytes = check}));
    REQUIRE(client->begin());
  }
  [[nodiscard]] std::string text() const {
    const auto read = PosixHost().read_file(agent.root() / "fuse/health.json");
    return read ? *read : "";
  }
  [[nodiscard]] Health health() const {
    const auto value = parse_json(text());
    return value ? parse_health(*value).value() : Health{};
  }
  // Waits for a verdict; the limit of the whole run ends one that never comes.
  Health wait_for(const std::string& state) const {
    while (health().state != state) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return health();
  }
  Health wait_for_message() const {
    while (health().message.empty()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return health();
  }
};

TEST_CASE("without a healthcheck nothing is probed and no verdict is written") {
  Checked checked;
  CHECK(checked.client->begin());
  CHECK(checked.text().empty());
}

TEST_CASE("a healthcheck that is no JSON is refused with its file") {
  Checked checked;
  REQUIRE(checked.client->upload({.path = "/fuse/healthcheck.json", .bytes = "{"}));
  const auto begun = checked.client->begin();
  REQUIRE_FALSE(begun);
  CHECK(begun.error().message.find("fuse/healthcheck.json") != std::string::npos);
}

TEST_CASE("an HTTP server is passing, failing and passing again") {
  LittleServer server;
  Checked checked;
  checked.begin(cat(R"({"http":{"port":)", server.port(),
                    R"(,"path":"/ok"},"interval_seconds":1,"retries":2})"));
  const Health passing = checked.wait_for("passing");
  CHECK(passing.failures == 0);
  CHECK(passing.message.empty());
  // Compact, in the wire's order.
  CHECK(checked.text().starts_with(R"({"state":"passing","since":")"));
  CHECK(parse_rfc3339(passing.since));

  server.status = 503;
  const Health failing = checked.wait_for("failing");
  CHECK(failing.failures == 2);
  CHECK(failing.message == cat("GET /ok on port ", server.port(), " was answered with 503 Said"));

  server.status = 302;
  CHECK(checked.wait_for("passing").message.empty());
}

TEST_CASE("a server that is not there, or says nothing, fails in words") {
  LittleServer server;
  server.silent = true;
  Checked checked;
  checked.begin(
      cat(R"({"http":{"port":)", server.port(), R"(},"interval_seconds":1,"retries":1})"));
  CHECK(checked.wait_for("failing").message ==
        cat("GET / on port ", server.port(), " was not answered within 1s"));
  CHECK(server.requests > 0);

  Checked nobody;
  // Nothing listens on port 1 of a machine that tests run on.
  nobody.begin(R"({"http":{"port":1},"interval_seconds":1,"retries":1})");
  CHECK(nobody.wait_for("failing").message == "GET / on port 1: Connection refused");
}

TEST_CASE("a command's code is the verdict, in the environment of the job") {
  Checked checked;
  REQUIRE(checked.client->upload({.path = "/fuse/env", .bytes = "WORD='it'\\''s said'\n"}));
  const fs::path flag = checked.agent.root() / "flag";
  checked.begin(cat(R"({"exec":["/bin/sh","-c","echo $WORD; test -e )", flag.native(),
                    R"("],"interval_seconds":1,"retries":1})"));
  CHECK(checked.wait_for("failing").message == "/bin/sh exited with 1: it's said");
  REQUIRE(PosixHost().write_file(flag, ""));
  checked.wait_for("passing");
}

TEST_CASE("a command that hangs is killed with all it started") {
  Checked checked;
  const fs::path pids = checked.agent.root() / "pids";
  checked.begin(cat(R"({"exec":["/bin/sh","-c","sleep 1000 & echo $! >)", pids.native(),
                    R"(; wait"],"interval_seconds":1,"retries":1})"));
  CHECK(checked.wait_for("failing").message == "/bin/sh did not end within 1s");
  const auto text = PosixHost().read_file(pids);
  REQUIRE(text);
  wait_until_gone(static_cast<pid_t>(parse_int(trim(*text)).value()));
}

TEST_CASE("a command that cannot be started is a failure in words") {
  Checked checked;
  checked.begin(R"({"exec":["no-such-command"],"start_period_seconds":100})");
  const Health health = checked.wait_for_message();
  CHECK(health.state == "starting");
  CHECK(health.failures == 0);
  CHECK(health.message ==
        "no-such-command exited with 127: fuse: cannot start no-such-command: No such file or "
        "directory");
}

TEST_CASE("an agent that takes over goes on probing") {
  Checked checked;
  const fs::path flag = checked.agent.root() / "flag";
  REQUIRE(PosixHost().write_file(flag, ""));
  checked.begin(
      cat(R"({"exec":["test","-e",")", flag.native(), R"("],"interval_seconds":1,"retries":1})"));
  const Health before = checked.wait_for("passing");
  checked.client.reset();
  checked.agent.kill();
  fs::remove(checked.agent.root().parent_path() / "ch.sock");
  checked.agent.start();
  checked.client = checked.agent.client();
  CHECK(checked.health().since == before.since);
  fs::remove(flag);
  CHECK(checked.wait_for("failing").failures == 1);
}

}  // namespace
}  // namespace fuse
