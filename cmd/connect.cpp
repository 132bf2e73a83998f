#include "cmd/connect.h"

#include "base/text.h"
#include "base/version.h"
#include "cmd/target.h"
#include "cmd/task_names.h"
#include "remote/remote_environments.h"

namespace fuse::cmd {

Result<std::shared_ptr<LocalClient>> local_client(Context& context) {
  const auto config = read_config(context.variables);
  if (!config) return config.error();
  return std::make_shared<LocalClient>(
      LocalClientOptions{.paths = {.dir = config->state_dir},
                         .environment = background_environment(context.variables),
                         .build_id = build_id()},
      context.host, context.clock, [&context](const std::string& line) { context.note(line); });
}

namespace {

// The client of this machine's own background process, which runs then.
Result<std::shared_ptr<LocalClient>> running_local(Context& context) {
  auto local = local_client(context);
  if (!local) return local;
  const auto running = (*local)->ensure(AcceptBuild::same);
  if (!running) return running.error();
  if (context.options.verbose) {
    context.note(
        cat("fuse's background process: pid ", running->pid, ", version ", running->version));
  }
  return local;
}

}  // namespace

Result<std::unique_ptr<HttpClient>> dial(Context& context) {
  const auto target = find_target(context);
  if (!target) return target.error();
  if (*target) return dial_target(**target, context.variables);
  const auto local = running_local(context);
  if (!local) return local.error();
  return (*local)->http();
}

namespace {

// Told where a log goes on, and what of it is lost.
LogNews log_news(Context& context) {
  return [&context](const std::string& line) { context.note(line); };
}

std::unique_ptr<EnvironmentApi> environments_at(std::unique_ptr<HttpClient> http, Clock& clock,
                                                RemoteOptions options) {
  return std::make_unique<TaskNames>(
      std::make_unique<RemoteEnvironments>(std::move(http), clock, std::move(options)));
}

}  // namespace

Result<std::unique_ptr<EnvironmentApi>> connect(Context& context) {
  const auto target = find_target(context);
  if (!target) return target.error();
  RemoteOptions options{.log_news = log_news(context)};
  if (*target) {
    auto http = dial_target(**target, context.variables);
    if (!http) return http.error();
    return environments_at(*std::move(http), context.clock, std::move(options));
  }
  const auto local = running_local(context);
  if (!local) return local.error();
  auto http = (*local)->http();
  if (!http) return http.error();
  // A stream in progress takes whatever answers: two builds must not take turns
  // in ending each other's process.
  options.revive = [local = *local]() -> Result<void> {
    const auto revived = local->ensure(AcceptBuild::any);
    if (!revived) return revived.error();
    return {};
  };
  return environments_at(*std::move(http), context.clock, std::move(options));
}

}  // namespace fuse::cmd
