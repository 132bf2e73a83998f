#include "cmd/local_client.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_reader.h"
#include "base/text.h"
#include "cmd/local_state.h"
#include "orchestrator/api/json.h"

namespace fuse::cmd {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds pause(20);
constexpr milliseconds handshake_timeout = seconds(5);
constexpr milliseconds last_moments = seconds(5);
constexpr std::size_t shown_log_lines = 12;

Result<DaemonInfo> parse_info(const std::string& body) {
  const auto json = parse_json(body);
  if (!json) return json.error();
  JsonReader reader(*json, "");
  DaemonInfo info{.pid = reader.integer("pid").value_or(0),
                  .version = reader.text("version").value_or(""),
                  .build_id = reader.text("build_id").value_or(""),
                  .started_at = reader.text("started_at").value_or("")};
  if (reader.text("service") != "fuse-orchestrator") {
    reader.complain("service", "must be \"fuse-orchestrator\"");
  }
  if (const auto done = reader.finish(); !done) return done.error();
  return info;
}

// Waiting for a background process, a moment at a time.
class Wait {
 public:
  Wait(Clock& clock, const LocalClientOptions& options,
       const std::function<void(const std::string& line)>& say)
      : clock_(clock), options_(options), say_(say), began_(clock.steady()) {}

  // False when it has taken too long.
  bool go_on() {
    const auto waited = clock_.steady() - began_;
    if (waited >= options_.patience) return false;
    if (waited >= options_.silence && !std::exchange(told_, true)) {
      const auto holder = StateLock::holder(options_.paths.lock());
      say_(cat("waiting for fuse's background process", holder ? cat(" (pid ", *holder, ")") : "",
               "; what it does: ", options_.paths.log().native()));
    }
    clock_.sleep(pause);
    return true;
  }

 private:
  Clock& clock_;
  const LocalClientOptions& options_;
  const std::function<void(const std::string& line)>& say_;
  SteadyTime began_;
  bool told_ = false;
};

}  // namespace

LocalClient::LocalClient(LocalClientOptions options, Host& host, Clock& clock,
                         std::function<void(const std::string& line)> say)
    : options_(std::move(options)), host_(host), clock_(clock), say_(std::move(say)) {}

Result<std::unique_ptr<HttpClient>> LocalClient::http() const {
  return make_http_client({.unix_socket = options_.paths.socket()});
}

Result<std::optional<DaemonInfo>> LocalClient::look() {
  const auto client = http();
  if (!client) return client.error();
  const auto reply =
      (*client)->send({.method = "GET", .target = "/v1/version", .timeout = handshake_timeout});
  if (!reply) {
    const ErrorCode code = reply.error().code;
    if (code == ErrorCode::unreachable || code == ErrorCode::unavailable) {
      return std::optional<DaemonInfo>();
    }
    return reply.error();
  }
  const auto info = parse_info(reply->body);
  if (reply->status != 200 || !info) {
    return Error{ErrorCode::internal,
                 cat((*client)->place(), " does not answer as fuse's background process does"),
                 {{"hint", cat("see who listens there, or remove it: rm ",
                               options_.paths.socket().native())}}};
  }
  return std::optional<DaemonInfo>(*info);
}

Result<LocalClient::Start> LocalClient::spawn() {
  if (const auto prepared = prepare_state_dir(options_.paths.dir); !prepared) {
    return prepared.error();
  }
  const auto log = open_log(options_.paths);
  if (!log) return log.error();
  Start start{.log_begin = log_size(options_.paths)};
  SpawnSpec spec{.argv = options_.program,
                 .environment = options_.environment,
                 .directory = options_.paths.dir,
                 .stdout_fd = log->get(),
                 .stderr_fd = log->get(),
                 .new_session = true};
  for (const char* word : {"local", "serve", "--state"}) spec.argv.emplace_back(word);
  spec.argv.push_back(options_.paths.dir.native());
  auto process = host_.spawn(spec);
  if (!process) return in_context("fuse's background process cannot be started", process.error());
  start.process = std::move(*process);
  return start;
}

Error LocalClient::did_not_start(const Start& start, const std::string& why) const {
  Error error{ErrorCode::unreachable, cat("fuse's background process ", why)};
  const std::string tail = log_tail(host_, options_.paths, start.log_begin, shown_log_lines);
  if (!tail.empty()) error.message += cat(":\n", tail);
  error.details["hint"] = cat("all of its log: ", options_.paths.log().native());
  return error;
}

Result<void> LocalClient::look_after(Start& start) {
  if (start.process == nullptr) return {};
  const auto ended = start.process->wait(milliseconds(0));
  if (!ended) return ended.error();
  if (!*ended) return {};
  if (!(*ended)->success()) {
    return did_not_start(start, (*ended)->signal != 0
                                    ? cat("was ended by signal ", (*ended)->signal)
                                    : std::string("did not start"));
  }
  start.process.reset();
  return {};
}

void LocalClient::announce(Start& start, const DaemonInfo& info) {
  if (start.process == nullptr) return;
  if (start.process->pid() != info.pid) {
    // Another one was first.  Ours must not come late to the lock and take it once
    // that one has been stopped.
    start.process.reset();
    return;
  }
  say_(
      cat("started fuse's background process (pid ", info.pid, "); stop it with: fuse local down"));
  start.process->release();
  // The one before it has given up its lock already, and is our child: reap it.
  if (started_ != nullptr) (void)started_->wait(last_moments);
  started_ = std::move(start.process);
}

Result<void> LocalClient::ask_to_stop() {
  const auto client = http();
  if (!client) return client.error();
  const auto reply = (*client)->send(
      {.method = "POST", .target = "/v1/local/shutdown", .timeout = handshake_timeout});
  // No answer: it is going down already.
  if (!reply || reply->status < 300) return {};
  return parse_error(reply->status, reply->body);
}

Error LocalClient::no_answer(Start& start) const {
  const auto holder = StateLock::holder(options_.paths.lock());
  Error error = did_not_start(start, holder ? cat("(pid ", *holder, ") does not answer at ",
                                                  options_.paths.socket().native())
                                            : std::string("did not start in time"));
  if (holder) error.details["hint"] += cat("\n  to end it: kill ", *holder);
  if (start.process != nullptr) start.process->release();
  return error;
}

Result<void> LocalClient::keep_starting(Start& start) {
  if (auto well = look_after(start); !well) return well;
  if (start.process != nullptr) return {};
  auto started = spawn();
  if (!started) return started.error();
  start = std::move(*started);
  return {};
}

Result<void> LocalClient::hand_over(const DaemonInfo& info) {
  say_(cat("fuse's background process (pid ", info.pid, ", version ", info.version,
           ") is of another build: it hands over to a new one; VMs go on"));
  return ask_to_stop();
}

Result<DaemonInfo> LocalClient::ensure(AcceptBuild accept) {
  const std::scoped_lock lock(mutex_);
  return find_or_start(accept);
}

Result<DaemonInfo> LocalClient::find_or_start(AcceptBuild accept) {
  Start start;
  Wait wait(clock_, options_, say_);
  bool handing_over = false;
  for (;;) {
    const auto found = look();
    if (!found) return found.error();
    if (*found && (accept == AcceptBuild::any || (*found)->build_id == options_.build_id)) {
      announce(start, **found);
      return **found;
    }
    if (!*found) {
      if (const auto well = keep_starting(start); !well) return well.error();
    } else if (!std::exchange(handing_over, true)) {
      if (const auto asked = hand_over(**found); !asked) return asked.error();
    }
    if (!wait.go_on()) return no_answer(start);
  }
}

Result<std::optional<DaemonInfo>> LocalClient::stop() {
  auto found = look();
  if (!found || !*found) return found;
  if (const auto asked = ask_to_stop(); !asked) return asked.error();
  Wait wait(clock_, options_, say_);
  while (StateLock::holder(options_.paths.lock())) {
    if (wait.go_on()) continue;
    return Error{ErrorCode::unavailable,
                 cat("fuse's background process (pid ", (*found)->pid, ") is still stopping"),
                 {{"hint", cat("to end it at once: kill -9 ", (*found)->pid,
                               " (nothing is lost by that; VMs go on)")}}};
  }
  return found;
}

Result<std::set<fs::path>> LocalClient::images_in_use() {
  const auto vms = host_.list_dir(options_.paths.agent_state() / "vms");
  if (!vms || vms->empty()) return std::set<fs::path>();
  if (const auto running = ensure(AcceptBuild::any); !running) return running.error();
  const auto client = http();
  if (!client) return client.error();
  const auto reply = (*client)->send({.method = "GET", .target = "/v1/local/images-in-use"});
  if (!reply) return reply.error();
  if (reply->status != 200) return parse_error(reply->status, reply->body);
  const auto json = parse_json(reply->body);
  if (!json) return json.error();
  JsonReader reader(*json, "");
  const auto files = reader.texts("files").value_or(std::vector<std::string>());
  if (const auto done = reader.finish(); !done) return done.error();
  return std::set<fs::path>(files.begin(), files.end());
}

}  // namespace fuse::cmd
