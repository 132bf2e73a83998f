#pragma once

#include <chrono>
#include <optional>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/result.h"
#include "orchestrator/api/environment_api.h"

namespace fuse::cmd {

// "passing", "failing since 12 s, 3 failures in a row: GET / on port 80 ...".
std::string health_text(const Health& health, WallTime now);

// Whether waiting for an environment's health check is over, and how: success when
// it passes, or when environment or job have failed, which others tell; an error
// when it is failing, or `waited` has reached `limit`, with its last message.
// Nothing: it goes on.
std::optional<Result<void>> health_verdict(const Environment& environment,
                                           std::chrono::nanoseconds waited,
                                           std::chrono::nanoseconds limit);

// Asks for the environment until its health check has a verdict, for at most
// `limit`, or until `stop`.
Result<void> wait_until_healthy(EnvironmentApi& api, const std::string& id, Clock& clock,
                                std::chrono::nanoseconds limit, const std::stop_token& stop);

}  // namespace fuse::cmd
