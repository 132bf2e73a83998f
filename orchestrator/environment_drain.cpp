#include "base/text.h"
#include "orchestrator/environment_service.h"
#include "orchestrator/guest_credentials.h"
#include "orchestrator/outcomes.h"

namespace fuse {

namespace {

// Ends the server that stock images run beside the job.  A guest that has none has
// nothing to end.
constexpr std::string_view end_server =
    "systemctl stop fused 2>/dev/null || pkill -TERM fused 2>/dev/null || "
    "[ ! -x /usr/local/bin/fused ]";
constexpr std::chrono::milliseconds patience{30'000};

}  // namespace

Result<Environment> EnvironmentService::drain(const std::string& id) {
  const auto running = find_running(id);
  if (!running) return running.error();
  const std::string& uid = running->row.environment.uid;
  const auto draining = transact<Environment>(store_, [&](StoreTx& tx) -> Result<Environment> {
    auto row = tx.environments.by_uid(uid);
    if (!row) return row.error();
    if (!*row) return Error{ErrorCode::not_found, cat("vm not found: vm ", id)};
    if ((*row)->environment.state != EnvironmentState::running) {
      return not_running((*row)->environment);
    }
    if (auto done = begin_drain(tx, **row, clock_.wall()); !done) return done.error();
    return (*row)->environment;
  });
  if (!draining) return draining.error();
  const std::string what = cat("drain vm ", draining->id);
  const auto told = running->agent.guests.exec(
      uid, {.cmd = {"sh", "-lc", std::string(end_server)}, .timeout_ms = patience.count()});
  if (!told) return Error{ErrorCode::internal, cat(what, ": ", told.error().message)};
  if (told->exit_code == 0) return draining;
  return Error{ErrorCode::internal, cat(what, ": exec exit ", told->exit_code)};
}

Result<void> EnvironmentService::rotate_token(const std::string& id) {
  if (!options_.guest_credentials) {
    return Error{ErrorCode::unimplemented,
                 "guests have no token here: the orchestrator was started without "
                 "TOKEN_ENCRYPTION_KEY"};
  }
  const auto running = find_running(id);
  if (!running) return running.error();
  const Environment& environment = running->row.environment;
  const std::string what = cat("rotate the token of vm ", environment.id);
  const auto files = make_guest_credentials(environment.id, clock_.wall());
  if (!files) return files.error();
  for (const UploadFile& file : *files) {
    auto done = running->agent.guests.upload(environment.uid, file);
    if (!done) return of_agent(what, done.error());
  }
  // Its server begins anew with them; what is exposed stays so.
  StartAgentRequest again;
  for (const Endpoint& endpoint : environment.endpoints) {
    again.expose.push_back({.port = endpoint.port, .as = endpoint.as});
  }
  auto done = running->agent.guests.start_agent(environment.uid, again);
  if (!done) return of_agent(what, done.error());
  return {};
}

}  // namespace fuse
