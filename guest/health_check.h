#pragma once

#include <memory>
#include <optional>

#include "base/clock.h"
#include "base/result.h"
#include "guest/children.h"
#include "guest/event_loop.h"
#include "guest/probe.h"

namespace fuse {

// Probes as healthcheck.json in `dir` says and keeps the verdict in health.json
// beside it, replaced whole whenever it changes: compact JSON, state, since,
// failures and message.
class HealthCheck {
 public:
  HealthCheck(EventLoop& loop, Children& children, fs::path dir)
      : loop_(loop), children_(children), dir_(std::move(dir)) {}
  HealthCheck(const HealthCheck&) = delete;
  HealthCheck& operator=(const HealthCheck&) = delete;
  ~HealthCheck() = default;

  // Reads what is to be probed and makes the first attempt.  Anew, when it was
  // begun before.  Success without healthcheck.json: then nothing is probed.
  Result<void> begin();
  // Goes on where an agent before this one was, if it had begun.
  void resume();

 private:
  Result<void> start(const std::optional<Health>& known);
  void attempt();
  std::unique_ptr<Probe> make_probe();
  void take(const ProbeOutcome& outcome);
  void write(const Health& verdict);

  EventLoop& loop_;
  Children& children_;
  fs::path dir_;
  SystemClock clock_{};
  HealthcheckSpec check_{};
  HealthPolicy policy_{};
  Health verdict_{};
  SteadyTime first_begun_{};
  SteadyTime attempt_begun_{};
  std::unique_ptr<Probe> probe_{};
  EventLoop::Registration next_{};
};

}  // namespace fuse
