#include "cmd/local_daemon.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "base/version.h"
#include "cmd/local_state.h"
#include "cmd/stop_request.h"
#include "net/http_server.h"
#include "orchestrator/orchestrator.h"

namespace fuse::cmd {

namespace {

using std::chrono::milliseconds;

// When somebody last asked for something.
class LastUse {
 public:
  explicit LastUse(Clock& clock) : clock_(clock), last_(clock.steady()) {}
  void now() { last_.store(clock_.steady()); }
  [[nodiscard]] std::chrono::nanoseconds ago() const { return clock_.steady() - last_.load(); }

 private:
  Clock& clock_;
  std::atomic<SteadyTime> last_;
};

HttpResponse version_response(const std::string& started_at) {
  nlohmann::ordered_json body;
  body["service"] = "fuse-orchestrator";
  body["version"] = version();
  body["build_id"] = build_id();
  body["pid"] = ::getpid();
  body["started_at"] = started_at;
  return json_response(200, body.dump());
}

HttpResponse images_response(const LocalAgent& agent) {
  nlohmann::ordered_json files = nlohmann::ordered_json::array();
  for (const fs::path& file : agent.images_in_use()) files.push_back(file.native());
  return json_response(200, nlohmann::ordered_json{{"files", std::move(files)}}.dump());
}

// The orchestrator's routes and those of our own.
HttpHandler make_handler(HttpHandler orchestrator, const LocalAgent& agent, StopRequest& stop,
                         LastUse& use, std::string started_at) {
  return [orchestrator = std::move(orchestrator), &agent, &stop, &use,
          started_at = std::move(started_at)](const HttpRequest& request) {
    use.now();
    if (request.method == "GET" && request.path == "/v1/version") {
      return version_response(started_at);
    }
    if (request.method == "POST" && request.path == "/v1/local/shutdown") {
      stop.ask("asked to");
      return json_response(202, "{}");
    }
    if (request.method == "GET" && request.path == "/v1/local/images-in-use") {
      return images_response(agent);
    }
    HttpResponse response = orchestrator(request);
    // Whoever follows something uses it until the end.
    if (response.stream) {
      response.stream = [stream = std::move(response.stream), &use](HttpStream& out) {
        stream(out);
        use.now();
      };
    }
    return response;
  };
}

Result<std::unique_ptr<Orchestrator>> open_orchestrator(const LocalDaemonOptions& options,
                                                        const LocalDaemonParts& parts) {
  auto key = read_or_make_key(parts.host, options.paths.key());
  if (!key) return key.error();
  auto opened = Orchestrator::open({.database = options.paths.database(), .key = std::move(*key)},
                                   parts.clock, parts.log);
  if (opened) return opened;
  Error error =
      in_context(cat("open the database ", options.paths.database().native()), opened.error());
  // A conflict is one between versions, and says so itself.
  if (error.code != ErrorCode::conflict) {
    error.details.emplace(
        "hint", cat("put back a copy of it, or start with an empty one: mv ",
                    options.paths.database().native(), " ", options.paths.database().native(),
                    ".damaged (environments that it knew are ended then)"));
  }
  return error;
}

// Waits for a reason to end.
std::string wait_for_end(const LocalDaemonOptions& options, const StateLock& lock,
                         Orchestrator& orchestrator, StopRequest& stop, const LastUse& use) {
  for (;;) {
    if (auto why = stop.wait(options.idle_check); !why.empty()) return why;
    // Nobody can reach it any more, and another one may have begun in its place.
    if (!lock.is_there(options.paths.lock())) return "its state folder was removed";
    if (use.ago() < options.idle_limit) continue;
    const auto live = orchestrator.environments().list({.limit = 1});
    if (live && live->environments.empty()) {
      return cat("nothing is alive and nobody asked for ",
                 std::chrono::duration_cast<std::chrono::minutes>(options.idle_limit).count(),
                 " minutes");
    }
  }
}

}  // namespace

Result<void> serve_local(const LocalDaemonOptions& options, const LocalDaemonParts& parts) {
  if (auto prepared = prepare_state_dir(options.paths.dir); !prepared) return prepared;
  const auto lock = StateLock::take(options.paths.lock());
  if (!lock) return lock.error();
  if (!*lock) return {};

  // Before there are threads, so that all of them leave signals to the watch.
  StopRequest stop;
  const auto watch = parts.watch_signals({SIGTERM, SIGINT, SIGHUP}, [&stop](int number) {
    if (number != SIGHUP) stop.ask(cat("signal ", number));
  });
  LastUse use(parts.clock);
  parts.log.info("starting", {{"version", std::string(version())},
                              {"build_id", build_id()},
                              {"pid", cat(::getpid())},
                              {"state", options.paths.dir.native()}});
  const auto orchestrator = open_orchestrator(options, parts);
  if (!orchestrator) return orchestrator.error();
  const auto agent = parts.make_agent([&to = **orchestrator] { to.look_now(); });
  if (!agent) return in_context("this machine's agent", agent.error());
  if (const auto attached = (*orchestrator)->attach_local_host({}, (*agent)->agent()); !attached) {
    return in_context("this machine's agent", attached.error());
  }
  const auto server = HttpServer::listen(
      UnixEndpoint{options.paths.socket()}, {.only_own_user = true},
      make_handler((*orchestrator)->handler(), **agent, stop, use, to_rfc3339(parts.clock.wall())),
      parts.log);
  if (!server) return server.error();
  (*orchestrator)->start();
  parts.log.info("ready", {{"at", (*server)->place()}});

  const std::string why = wait_for_end(options, **lock, **orchestrator, stop, use);
  parts.log.info("stopping", {{"because", why}});
  (*server)->stop(options.stop_grace);
  (*orchestrator)->stop();
  // VMs go on, but for those that nobody could find again.
  (*agent)->look_after_vms();
  parts.log.info("stopped");
  return {};
}

}  // namespace fuse::cmd
