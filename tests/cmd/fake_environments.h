#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "orchestrator/api/environment_api.h"

namespace fuse::cmd {

// Environments that exist only in memory, one live at a time.  A test sets how
// its life goes with `events` and `log`; both are handed out as a server would.
class FakeEnvironments final : public EnvironmentApi {
 public:
  // What a test arranges beforehand.
  Environment environment{.id = "fuse-train",
                          .uid = "01UID",
                          .state = EnvironmentState::provisioning,
                          .task_id = "train",
                          .host_id = "local",
                          .created_at = "2026-11-30T10:00:00Z",
                          .updated_at = "2026-11-30T10:00:00Z"};
  std::vector<EnvironmentEvent> story{};  // the events of its life
  std::string log{};
  std::optional<Error> create_error{};
  std::function<Result<std::unique_ptr<AttachSession>>(const AttachRequest&)> attach_with{};
  std::function<Result<ExecResult>(const ExecRequest&)> exec_with{};
  bool log_never_ends = false;
  std::function<void()> on_created = [] {};
  std::function<void()> on_log_shown = [] {};  // once all of `log` was handed out

  // What commands asked for.
  std::vector<CreateEnvironmentRequest> created{};
  std::vector<std::string> destroyed{};
  std::vector<std::string> stopped{};
  std::vector<std::string> drained{};
  std::vector<std::string> rotated{};
  std::vector<EnvironmentFilter> listed{};
  std::vector<LogQuery> logs_asked{};

  Result<Environment> create(const CreateEnvironmentRequest& request,
                             const CreateOptions& /*options*/) override {
    if (create_error) return *create_error;
    created.push_back(request);
    environment.id = "fuse-" + request.task_id;
    environment.task_id = request.task_id;
    environment.spec = request.spec;
    on_created();
    return environment;
  }
  Result<EnvironmentPage> list(const EnvironmentFilter& filter) override {
    listed.push_back(filter);
    return EnvironmentPage{.environments = {environment}};
  }
  Result<Environment> get(const std::string& id, bool /*include_ended*/) override {
    const std::scoped_lock lock(mutex_);
    if (id != environment.id && id != environment.uid) {
      return Error{ErrorCode::not_found, "vm not found: vm " + id};
    }
    return environment;
  }
  Result<void> destroy(const std::string& id) override {
    destroyed.push_back(id);
    return {};
  }
  Result<ExecResult> exec(const std::string& /*id*/, const ExecRequest& request) override {
    return exec_with(request);
  }
  Result<std::unique_ptr<AttachSession>> attach(const std::string& /*id*/,
                                                const AttachRequest& request) override {
    return attach_with(request);
  }
  Result<void> stop_job(const std::string& id) override {
    {
      const std::scoped_lock lock(mutex_);
      stopped.push_back(id);
    }
    changed_.notify_all();
    return {};
  }

  Result<Environment> drain(const std::string& id) override {
    drained.push_back(id);
    environment.state = EnvironmentState::draining;
    return environment;
  }
  Result<void> rotate_token(const std::string& id) override {
    rotated.push_back(id);
    return {};
  }
  Result<void> events(const std::string& /*id*/, const EventQuery& /*query*/, const EventSink& sink,
                      std::stop_token stop) override {
    for (const EnvironmentEvent& event : story) {
      // The end of the job comes after all of its output.
      if (ends_job(event)) wait_for_log(stop);
      if (stop.stop_requested()) return {};
      {
        const std::scoped_lock lock(mutex_);
        if (event.state) environment.state = *event.state;
        if (!event.error.empty()) environment.error = event.error;
        if (event.job) environment.job = event.job;
      }
      if (!sink(event)) return {};
      if (event.state && is_terminal(*event.state)) return {};
    }
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [] { return false; });
    return {};
  }

  Result<LogRange> logs(const std::string& /*id*/, const LogQuery& query, const ByteSink& sink,
                        std::stop_token stop) override {
    logs_asked.push_back(query);
    const std::string text = log.substr(query.tail ? 0 : query.offset);
    const bool wanted = text.empty() || sink(text);
    on_log_shown();
    std::unique_lock lock(mutex_);
    if (wanted && query.follow && log_never_ends) changed_.wait(lock, stop, [] { return false; });
    log_shown_ = true;
    changed_.notify_all();
    return LogRange{query.offset, query.offset + text.size()};
  }

 private:
  static bool ends_job(const EnvironmentEvent& event) {
    return event.job && event.job->state == JobState::exited;
  }
  void wait_for_log(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [this] { return log_shown_ || log.empty() || !stopped.empty(); });
  }

  std::mutex mutex_;
  std::condition_variable_any changed_;
  bool log_shown_ = false;
};

// Events as an orchestrator tells them.
inline EnvironmentEvent state_event(EnvironmentState state, std::string error = "") {
  return {.state = state, .error = std::move(error)};
}
inline EnvironmentEvent step_event(std::string key, std::string message,
                                   std::optional<std::int64_t> duration_ms = {}) {
  return {.event = "step",
          .key = std::move(key),
          .message = std::move(message),
          .duration_ms = duration_ms};
}
inline EnvironmentEvent job_event(JobStatus job) {
  return {.event = "job", .job = std::move(job)};
}
inline JobStatus running_job() {
  return {.state = JobState::running, .phase = JobPhase::run};
}
inline JobStatus ended_job(int exit_code, std::string reason = "exited") {
  return {.state = JobState::exited,
          .phase = JobPhase::done,
          .exit_code = exit_code,
          .reason = std::move(reason),
          .started_at = "2026-11-30T10:00:00Z",
          .finished_at = "2026-11-30T10:00:12Z"};
}

}  // namespace fuse::cmd
