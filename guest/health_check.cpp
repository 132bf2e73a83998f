#include "guest/health_check.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/posix_host.h"
#include "base/text.h"
#include "orchestrator/api/json.h"

namespace fuse {

namespace {

// None is an empty one: nothing is probed.
Result<HealthcheckSpec> read_check(const fs::path& file) {
  const auto text = PosixHost().read_file(file);
  if (!text && text.error().code == ErrorCode::not_found) return HealthcheckSpec();
  if (!text) return text.error();
  const auto value = parse_json(*text);
  if (!value) return in_context(file.native(), value.error());
  auto check = parse_healthcheck(*value);
  return check ? check : in_context(file.native(), check.error());
}

bool is_same(const Health& a, const Health& b) {
  return a.state == b.state && a.since == b.since && a.failures == b.failures &&
         a.message == b.message;
}

}  // namespace

Result<void> HealthCheck::begin() {
  return start(std::nullopt);
}

void HealthCheck::resume() {
  const auto text = PosixHost().read_file(dir_ / "health.json");
  if (!text) return;
  const auto value = parse_json(*text);
  if (!value) return;
  if (const auto known = parse_health(*value)) (void)start(*known);
}

Result<void> HealthCheck::start(const std::optional<Health>& known) {
  next_.reset();
  probe_.reset();
  auto check = read_check(dir_ / "healthcheck.json");
  if (!check) return check.error();
  check_ = *std::move(check);
  if (!check_.http && check_.exec.empty()) return {};
  policy_ = policy_of(check_);
  first_begun_ = clock_.steady();
  verdict_ = known.value_or(first_verdict(clock_.wall()));
  write(verdict_);
  attempt();
  return {};
}

void HealthCheck::attempt() {
  attempt_begun_ = clock_.steady();
  if (probe_ != nullptr && probe_->is_stuck()) {
    return take({.message = cat(check_.exec.front(), " of an earlier attempt cannot be killed")});
  }
  probe_ = make_probe();
}

std::unique_ptr<Probe> HealthCheck::make_probe() {
  const auto on_probed = [this](const ProbeOutcome& outcome) { take(outcome); };
  if (check_.http) return probe_http(loop_, *check_.http, policy_.timeout, on_probed);
  const fs::path env_file = dir_ / "env";
  const bool has_env = ::access(env_file.c_str(), R_OK) == 0;
  return probe_exec(loop_, children_,
                    {.argv = check_.exec,
                     .env_file = has_env ? env_file : fs::path(),
                     .timeout = policy_.timeout},
                    on_probed);
}

void HealthCheck::take(const ProbeOutcome& outcome) {
  const SteadyTime now = clock_.steady();
  const Health verdict =
      next_verdict(verdict_, outcome, policy_, {.now = clock_.wall(), .age = now - first_begun_});
  if (!is_same(verdict, verdict_)) write(verdict);
  verdict_ = verdict;
  const auto due = attempt_begun_ + policy_.interval;
  next_ = loop_.after(std::max<std::chrono::nanoseconds>(due - now, {}), [this] { attempt(); });
}

// A disk that is full now may not be at the next attempt; the verdict then is
// written with its next change.
void HealthCheck::write(const Health& verdict) {
  (void)PosixHost().replace_file(dir_ / "health.json", cat(to_json(verdict).dump(), "\n"), 0600);
}

}  // namespace fuse
