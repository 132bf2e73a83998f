#include "cmd/task_names.h"

#include <utility>

namespace fuse::cmd {

std::optional<std::string> TaskNames::id_of_task(const std::string& task) {
  const auto page = api_->list({.task_id = task, .include_ended = true, .limit = 1});
  if (!page || page->environments.empty()) return std::nullopt;
  const Environment& found = page->environments.front();
  // An orchestrator that does not know the filter answers with others.
  if (found.task_id != task || found.id == task) return std::nullopt;
  return found.id;
}

// Nothing has happened and nothing was handed out where there is no such id.
template <class Call>
auto TaskNames::by_either_name(const std::string& id, Call call) -> decltype(call(id)) {
  auto result = call(id);
  if (result || result.error().code != ErrorCode::not_found) return result;
  const auto own = id_of_task(id);
  if (!own) return result;
  auto again = call(*own);
  const bool known = again || again.error().code != ErrorCode::not_found;
  return known ? std::move(again) : std::move(result);
}

Result<Environment> TaskNames::create(const CreateEnvironmentRequest& request,
                                      const CreateOptions& options) {
  return api_->create(request, options);
}

Result<EnvironmentPage> TaskNames::list(const EnvironmentFilter& filter) {
  return api_->list(filter);
}

Result<Environment> TaskNames::get(const std::string& id, bool include_ended) {
  return by_either_name(id,
                        [&](const std::string& name) { return api_->get(name, include_ended); });
}

Result<void> TaskNames::destroy(const std::string& id) {
  return by_either_name(id, [&](const std::string& name) { return api_->destroy(name); });
}

Result<ExecResult> TaskNames::exec(const std::string& id, const ExecRequest& request) {
  return by_either_name(id, [&](const std::string& name) { return api_->exec(name, request); });
}

Result<std::unique_ptr<AttachSession>> TaskNames::attach(const std::string& id,
                                                         const AttachRequest& request) {
  return by_either_name(id, [&](const std::string& name) { return api_->attach(name, request); });
}

Result<void> TaskNames::stop_job(const std::string& id) {
  return by_either_name(id, [&](const std::string& name) { return api_->stop_job(name); });
}

Result<Environment> TaskNames::drain(const std::string& id) {
  return by_either_name(id, [&](const std::string& name) { return api_->drain(name); });
}

Result<void> TaskNames::rotate_token(const std::string& id) {
  return by_either_name(id, [&](const std::string& name) { return api_->rotate_token(name); });
}

Result<void> TaskNames::events(const std::string& id, const EventQuery& query,
                               const EventSink& sink, std::stop_token stop) {
  return by_either_name(
      id, [&](const std::string& name) { return api_->events(name, query, sink, stop); });
}

Result<LogRange> TaskNames::logs(const std::string& id, const LogQuery& query, const ByteSink& sink,
                                 std::stop_token stop) {
  return by_either_name(
      id, [&](const std::string& name) { return api_->logs(name, query, sink, stop); });
}

}  // namespace fuse::cmd
