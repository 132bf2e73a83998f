#include "orchestrator/silent_hosts.h"

#include "base/text.h"
#include "base/units.h"
#include "orchestrator/outcomes.h"

namespace fuse {

Result<void> SilentHosts::note_silent(const std::string& id) {
  const SteadyTime now = clock_.steady();
  const auto [known, first] = since_.try_emplace(id, now);
  if (first) {
    return tell(id, {.event = "step",
                     .key = "host",
                     .message = cat("host ", id, " does not answer; the vm may go on there")});
  }
  return now - known->second < lost_after_ ? Result<void>() : give_up(id, known->second);
}

Result<void> SilentHosts::note_answer(const std::string& id, HostAgent agent) {
  if (const auto silent = since_.find(id); silent != since_.end()) {
    const auto time = clock_.steady() - silent->second;
    since_.erase(silent);
    EnvironmentEvent event{
        .event = "step", .key = "host", .message = cat("host ", id, " answers again")};
    event.duration_ms = time / std::chrono::milliseconds(1);
    if (auto done = tell(id, event); !done) return done;
  }
  const auto given_up = transact<std::vector<std::string>>(
      store_, [&](StoreTx& tx) { return tx.reservations.of_ended(id); });
  if (!given_up) return given_up.error();
  for (const std::string& uid : *given_up) {
    const auto vm = agent.vms.get_vm(uid);
    if (vm) continue;
    if (vm.error().code != ErrorCode::not_found) return vm.error();
    log_.info("what a lost environment held is free", {{"host", id}, {"uid", uid}});
    auto freed = store_.run([&](StoreTx& tx) { return free_held(tx, uid, id); });
    if (!freed) return freed;
  }
  return {};
}

Result<void> SilentHosts::tell(const std::string& id, const EnvironmentEvent& event) {
  return store_.run([&](StoreTx& tx) -> Result<void> {
    const auto rows = tx.environments.live_on(id);
    if (!rows) return rows.error();
    for (const EnvironmentRow& row : *rows) {
      if (auto done = tx.events.append(row.environment, event); !done) return done;
    }
    return {};
  });
}

Result<void> SilentHosts::give_up(const std::string& id, SteadyTime since) {
  const std::string why = cat("host ", id, " has not answered for ",
                              to_string(std::chrono::nanoseconds(clock_.steady() - since)),
                              "; whether the vm still runs there is not known");
  return store_.run([&](StoreTx& tx) -> Result<void> {
    auto rows = tx.environments.live_on(id);
    if (!rows) return rows.error();
    for (EnvironmentRow& row : *rows) {
      log_.warning("an environment is given up",
                   {{"environment", row.environment.id}, {"host", id}});
      if (auto done = lose(tx, row, {ErrorCode::unavailable, why}, clock_.wall()); !done) {
        return done;
      }
    }
    return {};
  });
}

}  // namespace fuse
