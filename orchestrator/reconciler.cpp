#include "orchestrator/reconciler.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_reader.h"
#include "base/text.h"
#include "base/units.h"
#include "orchestrator/api/json.h"
#include "orchestrator/json_text.h"
#include "orchestrator/outcomes.h"

namespace fuse {

namespace {

constexpr std::int64_t health_milliseconds = 5000;

bool has_live_job(const EnvironmentRow& row) {
  return row.environment.job && !is_over(*row.environment.job);
}

bool same_health(const std::optional<Health>& a, const Health& b) {
  return a && a->state == b.state && a->since == b.since && a->failures == b.failures &&
         a->message == b.message;
}

}  // namespace

std::optional<Health> health_in(const std::string& text) {
  const auto value = parse_json(text);
  if (!value || !value->is_object()) return std::nullopt;
  auto health = parse_health(*value);
  if (!health) return std::nullopt;
  return *std::move(health);
}

void Reconciler::pass() {
  const SteadyTime begun = clock_.steady();
  raised_.clear();
  seen_ = {};
  const auto hosts =
      transact<std::vector<HostTable::Mark>>(store_, [](StoreTx& tx) { return tx.hosts.marks(); });
  if (!hosts) {
    log_.error("cannot read the hosts", {{"error", hosts.error().message}});
    return;
  }
  for (const HostTable::Mark& host : *hosts) {
    if (auto done = check_host(host.id); !done) {
      log_.warning("cannot check a host", {{"host", host.id}, {"error", done.error().message}});
    }
  }
  suspicions_ = std::exchange(raised_, {});
  const auto removed = transact<std::int64_t>(store_, [&](StoreTx& tx) {
    return tx.environments.remove_ended_before(clock_.wall() - options_.retention);
  });
  if (!removed) {
    log_.error("cannot remove old environments", {{"error", removed.error().message}});
  }
  metrics_.set("orchestrator_fleet_provider_vms", {}, seen_.vms);
  metrics_.set("orchestrator_reconcile_health_checked_vms", {}, seen_.health_checked);
  metrics_.set("orchestrator_reconcile_health_failing_vms", {}, seen_.health_failing);
  const std::chrono::duration<double> took = clock_.steady() - begun;
  metrics_.observe("orchestrator_reconcile_duration_seconds", {}, took.count());
  count("cycles");
}

void Reconciler::look_for_health() {
  const auto rows = transact<std::vector<EnvironmentRow>>(
      store_, [](StoreTx& tx) { return tx.environments.running_with_probe(); });
  if (!rows) {
    log_.error("cannot read the environments", {{"error", rows.error().message}});
    return;
  }
  for (const EnvironmentRow& row : *rows) {
    if (row.environment.health && row.environment.health->state == "passing") continue;
    const auto agent = hosts_.find(row.environment.host_id);
    if (!agent) continue;
    if (auto done = check_health(row, *agent); !done) {
      log_.warning("cannot note a verdict",
                   {{"environment", row.environment.id}, {"error", done.error().message}});
    }
  }
}

Result<void> Reconciler::check_host(const std::string& id) {
  const auto agent = hosts_.find(id);
  // The one who looks after the hosts has said so already.
  if (!agent && agent.error().code == ErrorCode::unreachable) return silent_.note_silent(id);
  if (!agent) return agent.error();
  if (auto done = check_environments(id, *agent); !done) return done;
  return silent_.note_answer(id, *agent);
}

// The database is read before the agent is asked: what comes up in between is
// not among the rows, so it cannot be missed in the list.
Result<void> Reconciler::check_environments(const std::string& id, HostAgent agent) {
  const auto rows = transact<std::vector<EnvironmentRow>>(
      store_, [&](StoreTx& tx) { return tx.environments.live_on(id); });
  if (!rows) return rows.error();
  const auto vms = agent.vms.list_vms("");
  if (!vms) return vms.error();
  seen_.vms += static_cast<int>(vms->size());
  std::map<std::string, VmInfo> listed;
  for (const VmInfo& vm : *vms) {
    if (vm.uid.empty()) continue;
    if (vm.cluster == store_.cluster()) {
      listed.emplace(vm.uid, vm);
    } else if (hosts_.is_ours_alone(id)) {
      destroy_leftover(agent, vm);
    }
  }
  for (const EnvironmentRow& row : *rows) {
    if (!is_up(row.environment.state)) continue;
    if (auto done = check_running(row, agent, listed); !done) {
      log_.warning("cannot check an environment",
                   {{"environment", row.environment.id}, {"error", done.error().message}});
    }
  }
  return check_orphans(agent, listed);
}

// On a host that nobody else uses: the database that knew it is gone.
void Reconciler::destroy_leftover(HostAgent agent, const VmInfo& vm) {
  log_.warning("destroying a vm of a database that is gone", {{"vm", vm.vm_id}, {"uid", vm.uid}});
  const auto gone = agent.vms.destroy_vm(vm.uid);
  if (!gone && gone.error().code != ErrorCode::not_found) {
    log_.warning("cannot destroy a vm", {{"vm", vm.vm_id}, {"error", gone.error().message}});
  }
}

Result<void> Reconciler::check_running(const EnvironmentRow& row, HostAgent agent,
                                       const std::map<std::string, VmInfo>& listed) {
  const auto found = listed.find(row.environment.uid);
  if (found == listed.end() || !found->second.alive) {
    const auto vm = agent.vms.get_vm(row.environment.uid);
    if (!vm && vm.error().code != ErrorCode::not_found) return vm.error();
    if (!vm) {
      count("vms_missing_provider");
      return fail(row, {ErrorCode::unavailable,
                        cat("host ", row.environment.host_id, " no longer has the vm")});
    }
    if (!vm->alive) return fail(row, {ErrorCode::unavailable, cat("the vm ended: ", vm->ended)});
  }
  if (row.probes_health) {
    if (auto done = check_health(row, agent); !done) return done;
  }
  return check_limits(row);
}

bool Reconciler::seen_twice(std::string_view what, const std::string& uid) {
  const std::string suspicion = cat(what, ' ', uid);
  raised_.insert(suspicion);
  const bool again = suspicions_.count(suspicion) != 0;
  count(cat(what, again ? "_failed" : "_suspected"));
  return again;
}

void Reconciler::count(std::string_view what) const {
  metrics_.add(cat("orchestrator_reconcile_", what, "_total"));
}

Result<void> Reconciler::check_limits(const EnvironmentRow& row) {
  const Environment& environment = row.environment;
  const WallTime now = clock_.wall();
  const std::chrono::seconds most(environment.spec.max_runtime_seconds);
  if (most.count() > 0 && now - row.created > most + options_.runtime_grace) {
    if (!seen_twice("stuck_tasks", environment.uid)) return {};
    return fail(row,
                {ErrorCode::unavailable,
                 cat("max_runtime of ", to_string(std::chrono::nanoseconds(most)), " is over")});
  }
  const std::chrono::seconds idle(environment.spec.idle_timeout_seconds);
  // A job that runs is what the environment is there for.
  if (idle.count() == 0 || has_live_job(row)) return {};
  const auto quiet = std::min<std::chrono::nanoseconds>(activity_.idle(environment.uid),
                                                        now - std::max(row.created, row.active));
  if (quiet < idle || !seen_twice("idle_vms", environment.uid)) return {};
  return fail(row, {ErrorCode::unavailable, cat("idle for longer than idle_timeout (",
                                                to_string(std::chrono::nanoseconds(idle)), ')')});
}

Result<void> Reconciler::check_health(const EnvironmentRow& row, HostAgent agent) {
  const auto result = agent.guests.exec(row.environment.uid, {.cmd = {"cat", "/fuse/health.json"},
                                                              .timeout_ms = health_milliseconds});
  ++seen_.health_checked;
  // Whatever is wrong with it, the last verdict stands.
  if (!result || result->exit_code != 0) return {};
  const auto health = health_in(result->out);
  if (health && health->state == "failing") ++seen_.health_failing;
  if (!health || same_health(row.environment.health, *health)) return {};
  return store_.run([&](StoreTx& tx) -> Result<void> {
    auto now = tx.environments.by_uid(row.environment.uid);
    if (!now) return now.error();
    if (!*now || (*now)->environment.state != EnvironmentState::running) return {};
    (*now)->environment.health = health;
    return tx.environments.update(**now);
  });
}

Result<void> Reconciler::check_orphans(HostAgent agent,
                                       const std::map<std::string, VmInfo>& listed) {
  for (const auto& [uid, vm] : listed) {
    const auto row = transact<std::optional<EnvironmentRow>>(
        store_, [&, &id = uid](StoreTx& tx) { return tx.environments.by_uid(id); });
    if (!row) return row.error();
    if (*row && !(*row)->ended) {
      orphans_.erase(uid);
      continue;
    }
    const auto [known, fresh] = orphans_.try_emplace(uid, clock_.steady());
    if (fresh) continue;
    if (clock_.steady() - known->second < options_.orphan_grace) continue;
    log_.warning("destroying a vm that no environment knows", {{"vm", vm.vm_id}, {"uid", uid}});
    const auto gone = agent.vms.destroy_vm(uid);
    if (!gone && gone.error().code != ErrorCode::not_found) {
      count("orphans_failed");
      log_.warning("cannot destroy a vm", {{"vm", vm.vm_id}, {"error", gone.error().message}});
      continue;
    }
    count("orphans_destroyed");
    orphans_.erase(uid);
  }
  return {};
}

Result<void> Reconciler::fail(const EnvironmentRow& row, Error why) {
  log_.warning("an environment has failed",
               {{"environment", row.environment.id}, {"error", why.message}});
  return store_.run([&](StoreTx& tx) -> Result<void> {
    auto now = tx.environments.by_uid(row.environment.uid);
    if (!now) return now.error();
    if (!*now || !is_up((*now)->environment.state)) return {};
    (*now)->environment.error = why.message;
    (*now)->error_code = why.code;
    return begin_destroy(tx, **now, EnvironmentState::failed, clock_.wall());
  });
}

}  // namespace fuse
