#include "guest/health_verdict.h"

#include <vector>

#include "base/text.h"
#include "tests/catch.h"

namespace fuse {
namespace {

using std::chrono::seconds;

const WallTime begin = parse_rfc3339("2026-11-30T10:00:00Z").value();

// "starting 0", "passing 20", "failing 30/3 why": state, since when in seconds,
// failures and message.
std::string text_of(const Health& health) {
  const auto since = parse_rfc3339(health.since).value() - begin;
  std::string text = cat(health.state, ' ', std::chrono::duration_cast<seconds>(since).count());
  if (health.failures != 0) text += cat('/', health.failures);
  if (!health.message.empty()) text += cat(' ', health.message);
  return text;
}

// The verdicts after attempts at 0 s, 10 s and so on: '+' passes, a letter is the
// message of one that fails.
std::vector<std::string> verdicts(std::string_view attempts, const HealthPolicy& policy) {
  Health health = first_verdict(begin);
  std::vector<std::string> out;
  seconds at{0};
  for (const char attempt : attempts) {
    const ProbeOutcome outcome{.passed = attempt == '+', .message = std::string(1, attempt)};
    health = next_verdict(health, outcome, policy, {.now = begin + at, .age = at});
    out.push_back(text_of(health));
    at += seconds(10);
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST_CASE("a check that passes at once is passing since then") {
  CHECK(verdicts("++", {}) == Texts{"passing 0", "passing 0"});
}

TEST_CASE("so many failures in a row make it failing, and one success passing") {
  CHECK(verdicts("+abc", {}) ==
        Texts{"passing 0", "passing 0/1 a", "passing 0/2 b", "failing 30/3 c"});
  CHECK(verdicts("abcd+e", {}) == Texts{"starting 0/1 a", "starting 0/2 b", "failing 20/3 c",
                                        "failing 20/4 d", "passing 40", "passing 40/1 e"});
  CHECK(verdicts("+ab+cd", {}) == Texts{"passing 0", "passing 0/1 a", "passing 0/2 b", "passing 0",
                                        "passing 0/1 c", "passing 0/2 d"});
  CHECK(verdicts("a", {.retries = 1}) == Texts{"failing 0/1 a"});
}

TEST_CASE("failures within the start period only leave their message") {
  const HealthPolicy policy{.retries = 2, .start_period = seconds(25)};
  CHECK(verdicts("abcde", policy) ==
        Texts{"starting 0 a", "starting 0 b", "starting 0 c", "starting 0/1 d", "failing 40/2 e"});
}

TEST_CASE("the first success ends the start period") {
  const HealthPolicy policy{.retries = 2, .start_period = seconds(1000)};
  CHECK(verdicts("a+bc", policy) ==
        Texts{"starting 0 a", "passing 10", "passing 10/1 b", "failing 30/2 c"});
}

TEST_CASE("the count of failures does not overflow") {
  Health health = first_verdict(begin);
  health.state = "failing";
  health.failures = 2147483647;
  CHECK(next_verdict(health, {}, {}, {.now = begin}).failures == 2147483647);
}

TEST_CASE("what a healthcheck leaves out has its default, and a timeout its bound") {
  const HealthPolicy usual = policy_of({});
  CHECK(usual.interval == seconds(10));
  CHECK(usual.timeout == seconds(2));
  CHECK(usual.retries == 3);
  CHECK(usual.start_period == seconds(0));
  CHECK(policy_of({.interval_seconds = 1}).timeout == seconds(1));
  CHECK(policy_of({.timeout_seconds = 30}).timeout == seconds(10));
  const HealthPolicy given = policy_of(
      {.interval_seconds = 7, .timeout_seconds = 5, .retries = 9, .start_period_seconds = 60});
  CHECK(given.interval == seconds(7));
  CHECK(given.timeout == seconds(5));
  CHECK(given.retries == 9);
  CHECK(given.start_period == seconds(60));
}

TEST_CASE("a long message is cut, and is UTF-8") {
  Health health = first_verdict(begin);
  health = next_verdict(health, {.message = std::string(1000, '\xff')}, {}, {.now = begin});
  CHECK(health.message.size() <= 600);
  CHECK(valid_utf8(health.message) == health.message);
}

TEST_CASE("an answer passes by its status") {
  const auto judged = [](std::string_view answer) {
    const ProbeOutcome outcome = judge_answer(answer, "it");
    return outcome.passed ? "passed" : outcome.message;
  };
  CHECK(judged("HTTP/1.1 200 OK\r\n\r\n") == "passed");
  CHECK(judged("HTTP/1.0 399 \r\n") == "passed");
  CHECK(judged("HTTP/1.1 204\r\n") == "passed");
  CHECK(judged("HTTP/1.1 400 Bad Request\r\n") == "it was answered with 400 Bad Request");
  CHECK(judged("HTTP/1.1 199 x\r\n") == "it was answered with 199 x");
  CHECK(judged("HTTP/1.1 503 Service Unavailable\n") ==
        "it was answered with 503 Service Unavailable");
  CHECK(judged("") == "it was answered with nothing");
  CHECK(judged("220 smtp.example\r\n") == "it was answered with something other than HTTP");
  CHECK(judged("HTTP/1.1 fine\r\n") == "it was answered with something other than HTTP");
}

TEST_CASE("a request asks for the path, by default the root") {
  CHECK(probe_request({.port = 80}).starts_with("GET / HTTP/1.1\r\nHost: 127.0.0.1:80\r\n"));
  CHECK(probe_request({.port = 81, .path = "/a?b"}).starts_with("GET /a?b HTTP/1.1\r\n"));
  CHECK(probe_request({.port = 80}).ends_with("Connection: close\r\n\r\n"));
}

TEST_CASE("a command passes with 0 and otherwise says its last line") {
  CHECK(judge_command(0, "anything", "it").passed);
  CHECK(judge_command(3, "", "it").message == "it exited with 3");
  CHECK(judge_command(3, "one\ntwo\n\n", "it").message == "it exited with 3: two");
}

}  // namespace
}  // namespace fuse
