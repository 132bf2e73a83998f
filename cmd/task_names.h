#pragma once

#include <memory>
#include <optional>
#include <string>

#include "orchestrator/api/environment_api.h"

namespace fuse::cmd {

// Environments that may also be called by their task: where nothing has an id, that
// of the environment of this task is tried.
class TaskNames final : public EnvironmentApi {
 public:
  explicit TaskNames(std::unique_ptr<EnvironmentApi> api) : api_(std::move(api)) {}

  Result<Environment> create(const CreateEnvironmentRequest& request,
                             const CreateOptions& options) override;
  Result<EnvironmentPage> list(const EnvironmentFilter& filter) override;
  Result<Environment> get(const std::string& id, bool include_ended) override;
  Result<void> destroy(const std::string& id) override;
  Result<ExecResult> exec(const std::string& id, const ExecRequest& request) override;
  Result<std::unique_ptr<AttachSession>> attach(const std::string& id,
                                                const AttachRequest& request) override;
  Result<void> stop_job(const std::string& id) override;
  Result<Environment> drain(const std::string& id) override;
  Result<void> rotate_token(const std::string& id) override;
  Result<void> events(const std::string& id, const EventQuery& query, const EventSink& sink,
                      std::stop_token stop) override;
  Result<LogRange> logs(const std::string& id, const LogQuery& query, const ByteSink& sink,
                        std::stop_token stop) override;

 private:
  // The id of the environment that has, or last had, this task.
  std::optional<std::string> id_of_task(const std::string& task);
  template <class Call>
  auto by_either_name(const std::string& id, Call call) -> decltype(call(id));

  std::unique_ptr<EnvironmentApi> api_;
};

}  // namespace fuse::cmd
