#include "guest/health_verdict.h"

#include <algorithm>
#include <limits>

#include "base/text.h"

namespace fuse {

namespace {

using std::chrono::seconds;

// A verdict travels in every list of environments.
constexpr std::size_t most_message = 200;

std::chrono::seconds given_or(std::int64_t given, seconds usual) {
  return given > 0 ? seconds(given) : usual;
}

std::string bounded(std::string_view text) {
  return valid_utf8(text.substr(0, most_message));
}

std::string_view last_line(std::string_view text) {
  text = trim(text);
  const std::size_t end = text.rfind('\n');
  return end == std::string_view::npos ? text : trim(text.substr(end + 1));
}

}  // namespace

HealthPolicy policy_of(const HealthcheckSpec& check) {
  const HealthPolicy usual;
  HealthPolicy policy;
  policy.interval = given_or(check.interval_seconds, usual.interval);
  policy.timeout = std::min(given_or(check.timeout_seconds, usual.timeout), policy.interval);
  policy.retries = check.retries > 0 ? check.retries : usual.retries;
  policy.start_period = seconds(std::max<std::int64_t>(check.start_period_seconds, 0));
  return policy;
}

Health first_verdict(WallTime now) {
  return {.state = "starting", .since = to_rfc3339(now)};
}

Health next_verdict(const Health& before, const ProbeOutcome& outcome, const HealthPolicy& policy,
                    const AttemptTime& time) {
  if (outcome.passed) {
    const bool already = before.state == "passing";
    return {.state = "passing", .since = already ? before.since : to_rfc3339(time.now)};
  }
  Health health = before;
  health.message = bounded(outcome.message);
  const bool still_starting = before.state == "starting" && time.age < policy.start_period;
  if (still_starting) return health;
  if (health.failures < std::numeric_limits<std::int32_t>::max()) ++health.failures;
  if (health.failures < policy.retries || before.state == "failing") return health;
  health.state = "failing";
  health.since = to_rfc3339(time.now);
  return health;
}

std::string probe_request(const HealthcheckHttp& http) {
  return cat("GET ", http.path.empty() ? "/" : http.path,
             " HTTP/1.1\r\nHost: 127.0.0.1:", http.port,
             "\r\nUser-Agent: fuse-healthcheck\r\nAccept: */*\r\n", "Connection: close\r\n\r\n");
}

ProbeOutcome judge_answer(std::string_view bytes, std::string_view name) {
  const std::string_view line = trim(bytes.substr(0, bytes.find('\n')));
  const std::size_t blank = line.find(' ');
  const std::string_view rest =
      blank == std::string_view::npos ? std::string_view() : line.substr(blank + 1);
  const auto code = parse_int(rest.substr(0, rest.find(' ')));
  if (!line.starts_with("HTTP/1.") || !code) {
    return {.message = cat(name, bytes.empty() ? " was answered with nothing"
                                               : " was answered with something other than HTTP")};
  }
  if (*code >= 200 && *code <= 399) return {.passed = true};
  return {.message = cat(name, " was answered with ", rest)};
}

ProbeOutcome judge_command(int shell_code, std::string_view output, std::string_view name) {
  if (shell_code == 0) return {.passed = true};
  const std::string_view said = last_line(output);
  return {.message = cat(name, " exited with ", shell_code, said.empty() ? "" : ": ", said)};
}

}  // namespace fuse
