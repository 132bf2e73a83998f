#include "guest/services.h"

#include <unistd.h>

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>

#include "base/posix_host.h"
#include "base/text.h"

namespace fuse {

namespace {

// Images come from registries.
constexpr std::chrono::minutes most_time(10);
// A daemon may start well after this agent.
constexpr std::chrono::milliseconds look_for_daemon(500);
constexpr int most_looks_for_daemon = 240;
// The list of many containers, each with its labels.
constexpr std::size_t most_output = 1U << 20U;

Error agent_start_failed(std::string_view why) {
  return {ErrorCode::internal, cat("agent start failed: services: ", why)};
}

std::string name_of(const ComposePlan& plan) {
  return fs::path(plan.argv.front()).filename();
}

}  // namespace

fs::path Services::at(const fs::path& path) const {
  return root_.empty() ? path : root_ / path.relative_path();
}

int Services::begin(OnUp on_up) {
  const int listener = next_listener_++;
  listeners_[listener] = std::move(on_up);
  if (under_way_) return listener;
  under_way_ = true;
  if (auto started = start(); !started) {
    timer_ = loop_.after({}, [this, error = started.error()] { finish(error); });
  }
  return listener;
}

Result<void> Services::start() {
  const fs::path compose_file = dir_ / "compose.yaml";
  if (::access(compose_file.c_str(), F_OK) < 0) {
    timer_ = loop_.after({}, [this] { finish({}); });
    return {};
  }
  auto plan = plan_compose(
      [this](const fs::path& path) { return ::access(at(path).c_str(), X_OK) == 0; }, compose_file);
  if (!plan) return agent_start_failed(plan.error().message);
  plan_ = *std::move(plan);
  looks_ = 0;
  await_daemon();
  return {};
}

void Services::await_daemon() {
  if (plan_.daemon.empty() || ::access(at(plan_.daemon).c_str(), F_OK) == 0) {
    run(plan_.argv, &Services::on_up);
  } else if (++looks_ > most_looks_for_daemon) {
    finish(agent_start_failed(cat("no daemon serves ", plan_.daemon.native())));
  } else {
    timer_ = loop_.after(look_for_daemon, [this] { await_daemon(); });
  }
}

void Services::run(const std::vector<std::string>& argv, Next next) {
  std::vector<std::string> environment = guest_environment({});
  environment.insert(environment.end(), plan_.environment.begin(), plan_.environment.end());
  // What it answers is not taken from within it, since the next one takes its place.
  const auto on_done = [this, next](const CommandResult& result) {
    timer_ = loop_.after({}, [this, next, result] { (this->*next)(result); });
  };
  auto command = Command::start(
      loop_, children_,
      {.child = {.argv = argv, .environment = std::move(environment), .directory = dir_},
       .timeout = most_time,
       .most_output = most_output},
      on_done);
  if (command) {
    command_ = *std::move(command);
  } else {
    timer_ = loop_.after(
        {}, [this, error = command.error()] { finish(agent_start_failed(error.message)); });
  }
}

void Services::on_up(const CommandResult& result) {
  said_ = telling_lines(result.output);
  const std::string quote = said_.empty() ? "" : cat(": ", said_);
  if (result.timed_out) {
    return finish(agent_start_failed(
        cat(name_of(plan_), " did not end within ", most_time.count(), " minutes", quote)));
  }
  if (!result.status.success()) {
    return finish(agent_start_failed(
        cat(name_of(plan_), " exited with ", result.status.shell_code(), quote)));
  }
  if (plan_.list.empty()) return finish({});
  run(plan_.list, &Services::on_listed);
}

void Services::on_listed(const CommandResult& result) {
  if (result.timed_out || !result.status.success()) {
    return finish(
        agent_start_failed(cat("cannot list the containers: ", telling_lines(result.output))));
  }
  const auto compose_file = PosixHost().read_file(dir_ / "compose.yaml");
  // Warnings may stand before the list, a line each.
  const std::size_t begin = cat("\n", result.output).find("\n[");
  const std::string_view list = begin == std::string::npos
                                    ? std::string_view()
                                    : std::string_view(result.output).substr(begin);
  const auto missing = services_not_started(compose_file ? *compose_file : "", list);
  if (missing.empty()) return finish({});
  finish(agent_start_failed(cat(join(missing, ", "), missing.size() == 1 ? " was" : " were",
                                " not started", said_.empty() ? "" : ": ", said_)));
}

void Services::finish(const Result<void>& outcome) {
  under_way_ = false;
  command_.reset();
  for (const auto& [id, on_up] : std::exchange(listeners_, {})) on_up(outcome);
}

}  // namespace fuse
