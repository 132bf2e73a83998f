#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "cmd/progress.h"
#include "orchestrator/api/environment_api.h"

namespace fuse::cmd {

// What is known of an environment.
struct Observed {
  EnvironmentState state = EnvironmentState::provisioning;
  std::string error{};
  std::optional<JobStatus> job{};
  bool over = false;               // no more events will come
  std::optional<Error> problem{};  // why not, when that is not the environment's end

  [[nodiscard]] bool has_ended() const { return is_terminal(state); }
  // The job runs or has run: there may be output.
  [[nodiscard]] bool job_began() const;
  // It is past its build, if it has one.
  [[nodiscard]] bool job_runs() const;
  [[nodiscard]] bool job_ended() const;
};

// Follows an environment's events in a thread of its own, from its current
// state on, and hands its steps to a Progress.
class Watcher {
 public:
  Watcher(EnvironmentApi& api, const Environment& environment, Progress& progress);

  // Enters what was read elsewhere.
  void learn(const Environment& environment);

  using Wanted = std::function<bool(const Observed& observed)>;
  // Waits until `wanted`, no more can come, `stop`, or `limit` is over; then
  // what is known.
  Observed wait(const Wanted& wanted, const std::stop_token& stop,
                std::optional<std::chrono::milliseconds> limit = {});
  // Waits until the job has ended, and of a lost one also a little for the end of
  // its environment, which says why.
  Observed wait_for_result(const std::stop_token& stop);

 private:
  bool take(const EnvironmentEvent& event);
  void follow(EnvironmentApi& api, const std::string& uid, const std::stop_token& stop);

  Progress& progress_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  Observed observed_{};
  std::jthread thread_;
};

}  // namespace fuse::cmd
