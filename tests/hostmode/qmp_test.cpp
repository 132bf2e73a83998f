#include "hostmode/qmp.h"

#include <sys/socket.h>

#include <array>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/files.h"
#include "base/text.h"
#include "hostmode/qmp_client.h"
#include "tests/catch.h"

namespace fuse {
namespace {

TEST_CASE("each kind of QEMU's messages is told apart") {
  const auto greeting = parse_qmp_message(
      R"({"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}}, "capabilities": []}})");
  REQUIRE(greeting);
  CHECK(greeting->kind == QmpMessage::Kind::greeting);

  const auto result = parse_qmp_message(R"({"return": {"status": "running"}, "id": 7})");
  REQUIRE(result);
  CHECK(result->kind == QmpMessage::Kind::result);
  CHECK(result->id == 7);
  CHECK(result->value == R"({"status":"running"})");

  const auto failure =
      parse_qmp_message(R"({"id": 8, "error": {"class": "GenericError", "desc": "no, \"x\""}})");
  REQUIRE(failure);
  CHECK(failure->kind == QmpMessage::Kind::failure);
  CHECK(failure->id == 8);
  CHECK(failure->name == "GenericError");
  CHECK(failure->description == "no, \"x\"");

  const auto event = parse_qmp_message(
      R"({"timestamp": {"seconds": 1}, "event": "SHUTDOWN", "data": {"guest": true}})");
  REQUIRE(event);
  CHECK(event->kind == QmpMessage::Kind::event);
  CHECK(event->name == "SHUTDOWN");
  CHECK(event->value == R"({"guest":true})");
}

TEST_CASE("what is no message is an error") {
  for (const std::string_view line :
       {"", "{", "[]", "1", "{}", R"({"event": 1})", R"({"error": "no"})", R"({"QMP": 1})",
        R"({"return": 1, "id": "x"})", R"({"error": {"class": 3, "desc": "x"}})"}) {
    INFO(line);
    CHECK_FALSE(parse_qmp_message(line));
  }
}

TEST_CASE("a command is one line") {
  CHECK(qmp_command("quit", nlohmann::ordered_json::object(), 3) ==
        "{\"execute\":\"quit\",\"id\":3}\n");
  CHECK(qmp_command("human-monitor-command", {{"command-line", "info\nusernet"}}, 4) ==
        "{\"execute\":\"human-monitor-command\",\"arguments\":{\"command-line\":"
        "\"info\\nusernet\"},\"id\":4}\n");
}

TEST_CASE("lines are put together from any pieces") {
  const std::string text = "{\"a\": 1}\r\n\r\n{\"b\": 2}\n{\"c\"";
  for (std::size_t size = 1; size <= text.size(); ++size) {
    QmpLines lines;
    std::vector<std::string> found;
    for (std::size_t at = 0; at < text.size(); at += size) {
      lines.feed(std::string_view(text).substr(at, size));
      while (true) {
        const auto line = lines.next();
        REQUIRE(line);
        if (!*line) break;
        found.push_back(**line);
      }
    }
    CHECK(found == std::vector<std::string>{"{\"a\": 1}", "{\"b\": 2}"});
  }
}

TEST_CASE("a line beyond the limit is refused, whole or not") {
  QmpLines whole(8);
  whole.feed("123456789\n");
  CHECK_FALSE(whole.next());
  QmpLines begun(8);
  begun.feed("123456789");
  CHECK_FALSE(begun.next());
  QmpLines fits(8);
  fits.feed("12345678\n");
  CHECK(fits.next().value() == "12345678");
}

// Plays QEMU: for each line that comes, the next of the answers.
class Monitor {
 public:
  explicit Monitor(std::vector<std::string> answers, std::string greeting = R"({"QMP": {}})") {
    std::array<int, 2> ends{};
    REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
    client_ = Fd(ends[0]);
    thread_ = std::jthread(
        [fd = ends[1], answers = std::move(answers), greeting = std::move(greeting), this] {
          const Fd own(fd);
          (void)write_all(fd, greeting + "\r\n", "greet");
          std::string pending;
          for (const std::string& answer : answers) {
            while (pending.find('\n') == std::string::npos) {
              std::array<char, 512> buffer{};
              const ssize_t got = ::recv(fd, buffer.data(), buffer.size(), 0);
              if (got <= 0) return;
              pending.append(buffer.data(), static_cast<std::size_t>(got));
            }
            commands += pending.substr(0, pending.find('\n') + 1);
            pending.erase(0, pending.find('\n') + 1);
            (void)write_all(fd, answer, "answer");
          }
        });
  }
  Fd take_client() { return std::move(client_); }
  void wait() { thread_.join(); }
  std::string commands;

 private:
  Fd client_;
  std::jthread thread_;
};

TEST_CASE("a conversation goes past events to the answer of its command") {
  Monitor monitor({"{\"return\": {}, \"id\": 1}\r\n",
                   "{\"event\": \"RESUME\"}\r\n{\"return\": 5, \"id\": 1}\r\n"
                   "{\"return\": {\"UUID\": \"01563E3A-B5D3\"}, \"id\": 2}\r\n"});
  auto qmp = QmpClient::over(monitor.take_client(), {});
  REQUIRE(qmp);

  const auto uuid = query_uuid(*qmp);

  monitor.wait();
  REQUIRE(uuid);
  CHECK(*uuid == "01563e3a-b5d3");
  CHECK(monitor.commands ==
        "{\"execute\":\"qmp_capabilities\",\"id\":1}\n{\"execute\":\"query-uuid\",\"id\":2}\n");
}

TEST_CASE("QEMU's refusal is quoted") {
  Monitor monitor(
      {"{\"return\": {}, \"id\": 1}\r\n",
       "{\"error\": {\"class\": \"GenericError\", \"desc\": \"no such thing\"}, \"id\": 2}\r\n"});
  auto qmp = QmpClient::over(monitor.take_client(), {});
  REQUIRE(qmp);

  const auto done = qmp->execute("blow-up");

  REQUIRE_FALSE(done);
  CHECK(done.error().message == "blow-up: no such thing");
}

TEST_CASE("a monitor that goes away or keeps silent is unreachable") {
  Monitor gone({"{\"return\": {}, \"id\": 1}\r\n"});
  auto qmp = QmpClient::over(gone.take_client(), {});
  REQUIRE(qmp);
  const auto done = qmp->execute("quit");
  REQUIRE_FALSE(done);
  CHECK(done.error().code == ErrorCode::unreachable);

  std::array<int, 2> ends{};
  REQUIRE(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) == 0);
  const Fd silent_end(ends[1]);
  const auto silent = QmpClient::over(Fd(ends[0]), {.greeting = std::chrono::milliseconds(20),
                                                    .answer = std::chrono::milliseconds(20)});
  REQUIRE_FALSE(silent);
  CHECK(silent.error().code == ErrorCode::unreachable);
  CHECK(silent.error().message.find("another process holds the monitor") != std::string::npos);
}

TEST_CASE("a monitor that does not begin with a greeting is refused") {
  Monitor strange({}, R"({"event": "STOP"})");
  CHECK_FALSE(QmpClient::over(strange.take_client(), {}));
}

}  // namespace
}  // namespace fuse
