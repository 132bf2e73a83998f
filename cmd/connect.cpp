#include "cmd/connect.h"

#include "base/text.h"
#include "base/version.h"
#include "remote/remote_environments.h"

namespace fuse::cmd {

namespace {

Result<std::unique_ptr<EnvironmentApi>> connect_to(const Config& config, Clock& clock) {
  auto http = make_http_client(
      {.base_url = config.url, .token = config.token, .user_agent = cat("fuse/", version())});
  if (!http) return in_context("FUSE_URL", http.error());
  return std::unique_ptr<EnvironmentApi>(
      std::make_unique<RemoteEnvironments>(std::move(*http), clock));
}

}  // namespace

Result<std::shared_ptr<LocalClient>> local_client(Context& context) {
  const auto config = read_config(context.variables);
  if (!config) return config.error();
  return std::make_shared<LocalClient>(
      LocalClientOptions{.paths = {.dir = config->state_dir},
                         .environment = background_environment(context.variables),
                         .build_id = build_id()},
      context.host, context.clock, [&context](const std::string& line) { context.note(line); });
}

Result<std::unique_ptr<EnvironmentApi>> connect(Context& context) {
  const auto config = read_config(context.variables);
  if (!config) return config.error();
  if (!config->url.empty()) return connect_to(*config, context.clock);

  const auto local = local_client(context);
  if (!local) return local.error();
  const auto running = (*local)->ensure(AcceptBuild::same);
  if (!running) return running.error();
  if (context.options.verbose) {
    context.note(cat("fuse's background process: pid ", running->pid, ", version ",
                     running->version, ", state in ", config->state_dir.native()));
  }
  auto http = (*local)->http();
  if (!http) return http.error();
  // A stream in progress takes whatever answers: two builds must not take turns
  // in ending each other's process.
  RemoteOptions options{.revive = [local = *local]() -> Result<void> {
    const auto revived = local->ensure(AcceptBuild::any);
    if (!revived) return revived.error();
    return {};
  }};
  return std::unique_ptr<EnvironmentApi>(
      std::make_unique<RemoteEnvironments>(std::move(*http), context.clock, std::move(options)));
}

}  // namespace fuse::cmd
