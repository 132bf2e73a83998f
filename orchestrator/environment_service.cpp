#include "orchestrator/environment_service.h"

#include <utility>

#include "base/text.h"
#include "orchestrator/outcomes.h"
#include "orchestrator/page_cursor.h"
#include "orchestrator/validate.h"

namespace fuse {

namespace {

constexpr std::chrono::milliseconds longest_nap{1000};

Error no_such_vm(const std::string& id) {
  return {ErrorCode::not_found, cat("vm not found: vm ", id)};
}

}  // namespace

Error of_agent(std::string_view what, Error error) {
  if (error.code == ErrorCode::unreachable) error.code = ErrorCode::unavailable;
  if (error.code == ErrorCode::not_found) error.code = ErrorCode::conflict;
  return in_context(what, std::move(error));
}

Error not_running(const Environment& environment) {
  return {ErrorCode::conflict, cat("vm not running: vm ", environment.id, " is in state ",
                                   to_string(environment.state))};
}

EnvironmentService::EnvironmentService(Store& store, const HostDirectory& hosts, Activity& activity,
                                       Clock& clock, EnvironmentServiceOptions options)
    : store_(store),
      hosts_(hosts),
      activity_(activity),
      clock_(clock),
      options_(std::move(options)),
      fleet_(store, hosts, clock) {}

Result<std::optional<EnvironmentRow>> EnvironmentService::by_uid(const std::string& uid) {
  return transact<std::optional<EnvironmentRow>>(
      store_, [&](StoreTx& tx) { return tx.environments.by_uid(uid); });
}

Result<EnvironmentRow> EnvironmentService::find(const std::string& id, bool include_ended) {
  using Maybe = std::optional<EnvironmentRow>;
  auto row = transact<Maybe>(store_, [&](StoreTx& tx) -> Result<Maybe> {
    auto found = tx.environments.live(id);
    if (!found || *found) return found;
    found = tx.environments.by_uid(id);
    if (!found || *found) return found;
    return include_ended ? tx.environments.newest_ended(id) : Result<Maybe>(Maybe());
  });
  if (!row) return row.error();
  if (!*row || ((*row)->ended && !include_ended)) return no_such_vm(id);
  return **std::move(row);
}

Result<HostAgent> EnvironmentService::agent_of(const EnvironmentRow& row) const {
  auto agent = hosts_.find(row.environment.host_id);
  if (!agent && agent.error().code == ErrorCode::unreachable) {
    return Error{ErrorCode::unavailable, agent.error().message};
  }
  return agent;
}

Result<EnvironmentService::Running> EnvironmentService::find_up(const std::string& id) {
  auto row = find(id, false);
  if (!row) return row.error();
  if (!is_up(row->environment.state)) return not_running(row->environment);
  const auto agent = agent_of(*row);
  if (!agent) return agent.error();
  return Running{*std::move(row), *agent};
}

Result<EnvironmentService::Running> EnvironmentService::find_running(const std::string& id) {
  auto up = find_up(id);
  if (up && up->row.environment.state != EnvironmentState::running) {
    return not_running(up->row.environment);
  }
  return up;
}

Result<EnvironmentPage> EnvironmentService::list(const EnvironmentFilter& filter) {
  const auto after = decode_cursor(filter.cursor);
  if (!after) return after.error();
  const std::int64_t size = page_size(filter.limit);
  // One more than asked for tells whether there is a next page.
  const auto rows = transact<std::vector<EnvironmentRow>>(
      store_, [&](StoreTx& tx) { return tx.environments.list(filter, *after, size + 1); });
  if (!rows) return rows.error();
  EnvironmentPage page;
  for (const EnvironmentRow& row : *rows) {
    if (static_cast<std::int64_t>(page.environments.size()) == size) {
      const Environment& last = page.environments.back();
      page.next_cursor = encode_cursor({last.id, last.uid});
      break;
    }
    page.environments.push_back(row.environment);
  }
  return page;
}

Result<Environment> EnvironmentService::get(const std::string& id, bool include_ended) {
  auto row = find(id, include_ended);
  if (!row) return row.error();
  return row->environment;
}

Result<void> EnvironmentService::destroy(const std::string& id) {
  const auto found = find(id, false);
  if (!found) return found.error();
  const std::string uid = found->environment.uid;
  bool starting = false;
  const auto wanted = transact<EnvironmentRow>(store_, [&](StoreTx& tx) -> Result<EnvironmentRow> {
    auto row = tx.environments.by_uid(uid);
    if (!row) return row.error();
    if (!*row || (*row)->ended) return no_such_vm(id);
    const bool under_way = (*row)->environment.state == EnvironmentState::destroying;
    starting = (*row)->environment.state == EnvironmentState::provisioning;
    auto begun = under_way ? hasten_destroy(tx, uid, clock_.wall())
                           : begin_destroy(tx, **row, EnvironmentState::destroyed, clock_.wall());
    if (!begun) return begun.error();
    return **row;
  });
  if (!wanted) return wanted.error();
  // The step that waits for the VM's guest would wait on, for minutes with some images.
  // Whatever comes of this, the steps of the destroy ask again.
  if (const auto agent = agent_of(*wanted); starting && agent) (void)agent->vms.destroy_vm(uid);
  return await_gone(*wanted);
}

Result<void> EnvironmentService::await_gone(const EnvironmentRow& row) {
  const std::string& uid = row.environment.uid;
  Wakeups::Subscription wakeups(store_.wakeups(), uid);
  const SteadyTime deadline = clock_.steady() + options_.create_wait;
  for (;;) {
    const auto now = by_uid(uid);
    if (now && (!*now || (*now)->ended)) return {};
    if (clock_.steady() >= deadline || stopping_.stop_requested()) {
      return Error{ErrorCode::internal,
                   cat("vm ", row.environment.id, " is still being destroyed; host ",
                       row.environment.host_id, " is asked until it is gone")};
    }
    wakeups.wait(longest_nap, stopping_.get_token());
  }
}

Result<ExecResult> EnvironmentService::exec(const std::string& id, const ExecRequest& request) {
  const auto checked = checked_exec(request);
  if (!checked) return checked.error();
  const auto running = find_running(id);
  if (!running) return running.error();
  const std::string& uid = running->row.environment.uid;
  activity_.note(uid);
  auto result = running->agent.guests.exec(uid, *checked);
  activity_.note(uid);
  if (!result) return of_agent(cat("exec in vm ", running->row.environment.id), result.error());
  return result;
}

Result<std::unique_ptr<AttachSession>> EnvironmentService::attach(const std::string& id,
                                                                  const AttachRequest& request) {
  const auto running = find_running(id);
  if (!running) return running.error();
  const std::string& uid = running->row.environment.uid;
  auto session = running->agent.guests.attach(uid, request);
  if (!session) {
    return of_agent(cat("attach to vm ", running->row.environment.id), session.error());
  }
  return activity_.follow(uid, *std::move(session));
}

Result<void> EnvironmentService::stop_job(const std::string& id) {
  const auto running = find_up(id);
  if (!running) return running.error();
  const EnvironmentRow& row = running->row;
  if (!row.has_job) {
    return Error{ErrorCode::conflict, cat("vm ", row.environment.id, " has no job")};
  }
  auto stopped = running->agent.jobs.stop_job(row.environment.uid);
  if (!stopped) return of_agent(cat("stop the job of vm ", row.environment.id), stopped.error());
  return {};
}

}  // namespace fuse
