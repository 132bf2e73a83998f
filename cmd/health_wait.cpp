#include "cmd/health_wait.h"

#include "base/text.h"
#include "base/units.h"
#include "cmd/output.h"

namespace fuse::cmd {

namespace {

constexpr std::chrono::milliseconds between_looks{300};

std::string failures_text(const Health& health) {
  if (health.failures == 0) return "";
  return cat(", ", health.failures, health.failures == 1 ? " failure" : " failures in a row");
}

Error unhealthy(const Environment& environment, std::string_view what) {
  std::string message = cat(environment.id, " ", what);
  if (environment.health && !environment.health->message.empty()) {
    message += cat(": ", printable(environment.health->message));
  }
  return {ErrorCode::internal,
          std::move(message),
          {{"hint", cat("it goes on; look into it: fuse shell ", environment.id,
                        "   remove it: fuse rm ", environment.id)}}};
}

}  // namespace

std::string health_text(const Health& health, WallTime now) {
  std::string text = health.state;
  const std::string age = age_of(health.since, now);
  if (age != "-") text += cat(" for ", age);
  text += failures_text(health);
  if (!health.message.empty()) text += cat(": ", printable(health.message));
  return text;
}

std::optional<Result<void>> health_verdict(const Environment& environment,
                                           std::chrono::nanoseconds waited,
                                           std::chrono::nanoseconds limit) {
  const bool job_failed =
      environment.job && is_over(*environment.job) && environment.job->exit_code != 0;
  if (is_terminal(environment.state) || job_failed) return Result<void>();
  if (environment.health && environment.health->state == "passing") return Result<void>();
  if (environment.health && environment.health->state == "failing") {
    return Result<void>(
        unhealthy(environment, cat("is not healthy", failures_text(*environment.health))));
  }
  if (waited < limit) return std::nullopt;
  return Result<void>(unhealthy(environment, cat("was not healthy within ", to_string(limit))));
}

Result<void> wait_until_healthy(EnvironmentApi& api, const std::string& id, Clock& clock,
                                std::chrono::nanoseconds limit, const std::stop_token& stop) {
  const SteadyTime begun = clock.steady();
  while (!stop.stop_requested()) {
    const auto environment = api.get(id, true);
    if (!environment) return environment.error();
    if (const auto over = health_verdict(*environment, clock.steady() - begun, limit)) return *over;
    clock.sleep(between_looks);
  }
  return {};
}

}  // namespace fuse::cmd
