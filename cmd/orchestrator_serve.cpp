#include "cmd/orchestrator_serve.h"

#include <unistd.h>

#include <csignal>
#include <memory>
#include <optional>
#include <utility>

#include "base/text.h"
#include "base/version.h"
#include "cmd/local_state.h"
#include "cmd/stop_request.h"
#include "orchestrator/http.h"
#include "orchestrator/postgres.h"
#include "remote/remote_host_agent.h"

namespace fuse::cmd {

namespace {

ConnectAgent connect_over_http(Clock& clock) {
  return [&clock](const AgentAddress& address) -> Result<HostAgent> {
    auto made = connect_host_agent({.url = address.url, .token = address.token}, clock);
    if (!made) return made.error();
    const std::shared_ptr<RemoteHostAgent> owner = *std::move(made);
    HostAgent agent = owner->interfaces();
    agent.owner = owner;
    return agent;
  };
}

// The key that was said, or that of the file, which is made where it is missing.
Result<std::string> key_of(const OrchestratorSettings& settings, Host& host, Log& log) {
  if (!settings.key.empty()) return settings.key;
  auto key = read_or_make_key(host, settings.key_file);
  if (!key) return key.error();
  log.warning("secrets are sealed with a key beside the database: keep a copy of it elsewhere",
              {{"key", settings.key_file.native()}});
  return key;
}

// The database in words, without a password.
std::string place_of(const OrchestratorSettings& settings) {
  if (settings.database_url.empty()) return settings.database.native();
  return postgres_place(settings.database_url).value();
}

// Keeps a file's database for this process alone; a server is shared.
Result<std::optional<StateLock>> lock_state(const OrchestratorSettings& settings, Host& host) {
  if (!settings.database_url.empty()) return std::optional<StateLock>();
  const fs::path dir = settings.database.parent_path();
  if (const auto made = host.make_dirs(dir, 0700); !made) return made.error();
  const fs::path file = dir / "lock";
  auto lock = StateLock::take(file);
  if (!lock || *lock) return lock;
  return Error{ErrorCode::conflict,
               cat("another orchestrator (pid ", StateLock::holder(file).value_or(0), ") has ",
                   settings.database.native())};
}

OrchestratorConfig config_of(const OrchestratorSettings& settings, std::string key, Clock& clock) {
  return {.database = settings.database,
          .database_url = settings.database_url,
          .key = std::move(key),
          .prefix = settings.prefix,
          .workers = settings.workers,
          .most_startup = settings.most_startup,
          .policy = settings.policy,
          .guest_credentials = !settings.key.empty(),
          .callers = settings.callers,
          .connect = connect_over_http(clock)};
}

HttpServerOptions server_options_of(const OrchestratorSettings& settings) {
  constexpr std::size_t most_connections = 2048;
  HttpServerOptions options;
  options.most_connections = most_connections;
  options.body_limit = api_body_limit;
  options.headers = api_headers();
  options.tls = settings.tls;
  options.body_time = std::chrono::seconds(15);
  return options;
}

}  // namespace

Result<void> serve_orchestrator(const OrchestratorSettings& settings,
                                const OrchestratorServeParts& parts) {
  // Before there are threads, so that all of them leave signals to the watch.
  StopRequest stop;
  const auto watch = parts.watch_signals({SIGTERM, SIGINT, SIGHUP}, [&stop](int number) {
    if (number != SIGHUP) stop.ask(cat("signal ", number));
  });
  parts.log.info("starting", {{"version", std::string(version())},
                              {"build_id", build_id()},
                              {"pid", cat(::getpid())},
                              {"database", place_of(settings)}});
  for (const std::string& warning : settings.warnings) parts.log.warning(warning);
  const auto lock = lock_state(settings, parts.host);
  if (!lock) return lock.error();
  auto key = key_of(settings, parts.host, parts.log);
  if (!key) return key.error();
  const auto orchestrator =
      Orchestrator::open(config_of(settings, *std::move(key), parts.clock), parts.clock, parts.log);
  if (!orchestrator) {
    return in_context(cat("open the database ", place_of(settings)), orchestrator.error());
  }
  const auto server = HttpServer::listen(settings.listen, server_options_of(settings),
                                         (*orchestrator)->handler(), parts.log);
  if (!server) return server.error();
  (*orchestrator)->start();
  parts.log.info("ready", {{"at", (*server)->place()}});

  const std::string why = stop.wait();
  parts.log.info("stopping", {{"because", why}});
  (*server)->stop(settings.shutdown);
  (*orchestrator)->stop();
  parts.log.info("stopped");
  return {};
}

}  // namespace fuse::cmd
