#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "orchestrator/api/host_agent.h"
#include "orchestrator/rows.h"

// The steps that operations are made of.  Each talks to the host's agent at most
// about one thing, may be repeated, and touches no database.
namespace fuse {

namespace steps {
inline constexpr std::string_view create_vm = "create_vm";
inline constexpr std::string_view deliver = "deliver";
inline constexpr std::string_view script = "script";                  // noted, not begun
inline constexpr std::string_view script_running = "script_running";  // begun
inline constexpr std::string_view start_agent = "start_agent";
inline constexpr std::string_view start_job = "start_job";
inline constexpr std::string_view follow_job = "follow_job";
inline constexpr std::string_view destroy_vm = "destroy_vm";
inline constexpr std::string_view finish = "finish";
}  // namespace steps

// What a step may look at.
struct StepInput {
  HostAgent agent;
  const OperationRow& operation;
  const EnvironmentRow& row;
  // Of a create, while it is not delivered.
  const std::optional<CreateEnvironmentRequest>& request;
  const std::vector<BindingRow>& bindings;
  const std::string& cluster;
  WallTime now{};
  bool guest_credentials = false;  // the guest gets a certificate and a token
  // Another worker, or this program before it was restarted, may have begun the
  // step before.
  bool resumed = false;
};

// What became of a step.
struct StepOutcome {
  enum class Kind {
    next,       // go on with `step` of the same operation
    again,      // the same step once more after `delay`
    retry,      // it failed in a way that may pass: the same step, later and later
    failed,     // a create or the environment failed for good: take it down
    running,    // the create is done
    take_down,  // the job is done and so is its environment
    settled,    // nothing is left to follow
    ended,      // the environment is gone
  };
  Kind kind = Kind::settled;
  std::string_view step{};
  std::chrono::milliseconds delay{0};
  Error error{};                                  // of retry and failed
  std::function<void(EnvironmentRow&)> change{};  // to the row as it is by then
  std::vector<EnvironmentEvent> events{};         // beside those of the step itself
};

// One step of a create, of following a job, or of a destroy.
StepOutcome run_create_step(const StepInput& input);
StepOutcome run_watch_step(const StepInput& input);
StepOutcome run_destroy_step(const StepInput& input);

// What an environment's stream says when a create enters that step; empty when
// it is not worth a line.
struct StepTitle {
  std::string key{};
  std::string message{};
};
StepTitle title_of(std::string_view step, const EnvironmentRow& row);

// Whether an agent's error may pass by itself.
bool may_pass(const Error& error);

}  // namespace fuse
