#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "orchestrator/api/types.h"

// The deciding part of a guest's health check: from attempts to a verdict.
namespace fuse {

// How attempts are made and counted: a healthcheck with its defaults filled in.
struct HealthPolicy {
  std::chrono::seconds interval{10};
  std::chrono::seconds timeout{2};  // of one attempt; never above the interval
  std::int32_t retries = 3;         // failures in a row that are a verdict
  std::chrono::seconds start_period{0};
};
HealthPolicy policy_of(const HealthcheckSpec& check);

// What one attempt found.
struct ProbeOutcome {
  bool passed = false;
  std::string message{};  // of one that failed: why
};

// When an attempt ended: by the clock, and after the first one began.
struct AttemptTime {
  WallTime now{};
  std::chrono::nanoseconds age{};
};

// "starting", since `now`.
Health first_verdict(WallTime now);
// The verdict after one more attempt.  Failures before the first success and
// within the start period only leave their message.
Health next_verdict(const Health& before, const ProbeOutcome& outcome, const HealthPolicy& policy,
                    const AttemptTime& time);

// The request of an HTTP attempt.
std::string probe_request(const HealthcheckHttp& http);
// What an answer that begins with `bytes` says.  200 to 399 passes.  `name` is
// what messages call the attempt.
ProbeOutcome judge_answer(std::string_view bytes, std::string_view name);
// What a command says that ended with `shell_code` and printed `output` last.
ProbeOutcome judge_command(int shell_code, std::string_view output, std::string_view name);

}  // namespace fuse
