#include <algorithm>
#include <utility>

#include "base/ids.h"
#include "base/text.h"
#include "orchestrator/deliveries.h"
#include "orchestrator/environment_service.h"
#include "orchestrator/outcomes.h"
#include "orchestrator/steps.h"
#include "orchestrator/validate.h"

namespace fuse {

namespace {

constexpr int most_plans = 10;
constexpr std::int64_t usual_settle_seconds = 3;
constexpr std::chrono::milliseconds longest_nap{1000};

bool is_unique_violation(const Error& error) {
  const auto reason = error.details.find("reason");
  return error.code == ErrorCode::conflict && reason != error.details.end() &&
         reason->second == "unique";
}

bool is_unknown_commit(const Error& error) {
  const auto reason = error.details.find("reason");
  return reason != error.details.end() && reason->second == "commit";
}

// Why an insert was given up, for the one who runs the transaction.
Error hitch(const std::string& what) {
  return {ErrorCode::conflict, what, {{"hitch", what}}};
}

Result<void> bind_devices(StoreTx& tx, const std::string& uid, const Placement& placement) {
  const auto bind = [&](const std::vector<std::string>& uuids, DeviceKind kind) -> Result<void> {
    for (const std::string& uuid : uuids) {
      if (auto done = tx.bindings.insert({uid, placement.host_id, uuid, kind}); !done) {
        return is_unique_violation(done.error()) ? hitch("a device is taken") : done.error();
      }
    }
    return {};
  };
  if (auto done = bind(placement.gpu_device_uuids, DeviceKind::gpu); !done) return done;
  return bind(placement.mig_instance_uuids, DeviceKind::mig);
}

// Whether a create has nothing more to wait for, or from when its job's run has
// to be watched for a while.
enum class Settling { waits, watches, done };

Settling settling_of(const EnvironmentRow& row) {
  if (is_terminal(row.environment.state)) return Settling::done;
  if (row.environment.state == EnvironmentState::destroying) {
    return row.final_state == EnvironmentState::destroyed && row.has_job ? Settling::done
                                                                         : Settling::waits;
  }
  if (row.environment.state == EnvironmentState::draining) return Settling::done;
  if (row.environment.state != EnvironmentState::running) return Settling::waits;
  if (!row.has_job) return Settling::done;
  if (!row.environment.job) return Settling::waits;
  if (is_over(*row.environment.job)) return Settling::done;
  const bool built = row.environment.job->phase != JobPhase::build || row.step_names.empty();
  const bool runs = row.environment.job->state == JobState::running && built;
  return runs ? Settling::watches : Settling::waits;
}

Result<Environment> answer_of(const EnvironmentRow& row) {
  if (!row.environment.error.empty() && row.final_state == EnvironmentState::failed) {
    return Error{row.error_code, row.environment.error};
  }
  const auto& job = row.environment.job;
  const bool ended_early =
      is_terminal(row.environment.state) && (!job || job->state != JobState::exited);
  if (ended_early) {
    return Error{ErrorCode::conflict,
                 cat("vm ", row.environment.id, " was destroyed while it was being created")};
  }
  return row.environment;
}

}  // namespace

Result<Environment> EnvironmentService::create(const CreateEnvironmentRequest& request,
                                               const CreateOptions& options) {
  auto made = create_checked(request, options);
  if (made) return made;
  Error error = made.error();
  error.message = redacted(std::move(error.message), request.secrets);
  return error;
}

Result<Environment> EnvironmentService::create_checked(const CreateEnvironmentRequest& request,
                                                       const CreateOptions& options) {
  const auto host_exists = [&](const std::string& id) -> Result<void> {
    const auto host =
        transact<std::optional<HostRow>>(store_, [&](StoreTx& tx) { return tx.hosts.by_id(id); });
    if (!host) return host.error();
    if (*host) return {};
    return Error{ErrorCode::not_found, cat("spec.host_id: host \"", id, "\" is not registered")};
  };
  auto valid = validate(request, {host_exists, options_.most_startup});
  if (!valid) return valid.error();
  const auto row = place_and_insert(with_defaults(request));
  if (!row) return row.error();
  if (options.respond_async) return row->environment;
  return await_created(*row);
}

Result<void> EnvironmentService::refuse_duplicate(const std::string& task_id) {
  const std::string id = options_.prefix + task_id;
  const auto live = transact<std::optional<EnvironmentRow>>(
      store_, [&](StoreTx& tx) { return tx.environments.live(id); });
  if (!live) return live.error();
  if (!*live) return {};
  return Error{ErrorCode::conflict,
               cat("task already assigned: task ", task_id, " already assigned to vm ", id)};
}

// Nobody is refused for what the fleet looked like some time ago.
Result<Decision> EnvironmentService::decide(const ResourceSpec& spec, FleetView::Look look) {
  auto decision = fleet_.use(look, [&](const Fleet& fleet) {
    const SteadyTime begun = clock_.steady();
    Decision made = place(spec, fleet, options_.policy);
    if (options_.metrics != nullptr) {
      const std::chrono::duration<double> took = clock_.steady() - begun;
      options_.metrics->observe("orchestrator_placement_duration_seconds", {}, took.count());
    }
    return made;
  });
  const bool stale_refusal = decision && !decision->placement && look == FleetView::Look::recent;
  return stale_refusal ? decide(spec, FleetView::Look::fresh) : decision;
}

// The placement is planned on what the fleet looked like; when that changed
// before it was written down, it is planned again.
Result<EnvironmentRow> EnvironmentService::place_and_insert(
    const CreateEnvironmentRequest& request) {
  auto look = FleetView::Look::recent;
  for (int plan = 0; plan < most_plans; ++plan) {
    if (auto free = refuse_duplicate(request.task_id); !free) return free.error();
    auto placed = try_to_place(request, std::exchange(look, FleetView::Look::fresh));
    if (placed || placed.error().details.count("hitch") == 0) return placed;
  }
  return Error{ErrorCode::unavailable,
               "placement: the fleet changed each time it was planned; try again"};
}

// An error with details.hitch when the fleet is not as it was looked at.
Result<EnvironmentRow> EnvironmentService::try_to_place(const CreateEnvironmentRequest& request,
                                                        FleetView::Look look) {
  const auto decision = decide(request.spec, look);
  if (!decision) return decision.error();
  if (!decision->placement) return decision->refusal;
  const auto row = new_row(request, *decision->placement);
  if (!row) return row.error();
  auto done =
      store_.run([&](StoreTx& tx) { return insert(tx, *row, request, *decision->placement); });
  fleet_.note_change(decision->placement->host_id);
  if (done) return *row;
  if (is_unknown_commit(done.error())) {
    // The connection broke at the commit: what is there now tells.
    const auto there = by_uid(row->environment.uid);
    if (!there) return there.error();
    if (*there) return **there;
  }
  return done.error();
}

Result<EnvironmentRow> EnvironmentService::new_row(const CreateEnvironmentRequest& request,
                                                   const Placement& placement) const {
  const WallTime now = clock_.wall();
  EnvironmentRow row{.created = now,
                     .on_exit = request.on_exit,
                     .settle_seconds = request.settle_seconds.value_or(usual_settle_seconds),
                     .has_job = request.phases.has_value(),
                     .probes_health = request.healthcheck.has_value()};
  row.environment = {.id = options_.prefix + request.task_id,
                     .uid = new_ulid(now),
                     .state = EnvironmentState::provisioning,
                     .task_id = request.task_id,
                     .host_id = placement.host_id,
                     .spec = request.spec,
                     .created_at = to_rfc3339(now),
                     .updated_at = to_rfc3339(now),
                     .gpu_device_uuids = placement.gpu_device_uuids,
                     .mig_instance_uuids = placement.mig_instance_uuids};
  if (row.has_job) {
    for (const BuildStep& step : request.phases->build) row.step_names.push_back(step.name);
    row.environment.job = JobStatus{.steps = static_cast<std::int32_t>(row.step_names.size())};
  }
  return row;
}

Result<void> EnvironmentService::insert(StoreTx& tx, const EnvironmentRow& row,
                                        const CreateEnvironmentRequest& request,
                                        const Placement& placement) const {
  const auto raised = tx.hosts.raise(placement.host_id, placement.host_version);
  if (!raised) return raised.error();
  if (*raised == HostTable::Raised::moved) return hitch("the host changed");
  if (auto done = tx.environments.insert(row); !done) {
    return is_unique_violation(done.error()) ? hitch("the task is taken") : done.error();
  }
  const std::string& uid = row.environment.uid;
  auto reserved = tx.reservations.insert(
      {.environment_uid = uid, .host_id = placement.host_id, .spec = request.spec});
  if (!reserved) return reserved;
  if (auto done = bind_devices(tx, uid, placement); !done) return done;
  if (auto done = tx.deliveries.insert(uid, request); !done) return done;
  auto noted = tx.operations.insert({.id = new_ulid(row.created),
                                     .environment_uid = uid,
                                     .kind = OperationKind::create,
                                     .step = std::string(steps::create_vm),
                                     .step_started = row.created,
                                     .next_try = row.created,
                                     .deadline = row.created + options_.up_within});
  if (!noted) return noted;
  const StepTitle title = title_of(steps::create_vm, row);
  for (EnvironmentEvent event :
       {state_event(row),
        EnvironmentEvent{.event = "step",
        .key = "schedule",
        .message = cat("placed on host ", placement.host_id),
        .duration_ms = 0},
        EnvironmentEvent{.event = "step", .key = title.key, .message = title.message}}) {
    if (auto done = tx.events.append(row.environment, std::move(event)); !done) return done;
  }
  return {};
}

// The environment is there, whatever becomes of the database while it is waited
// for: then the answer is what was known of it last.
Result<Environment> EnvironmentService::await_created(EnvironmentRow row) {
  const std::string uid = row.environment.uid;
  Wakeups::Subscription wakeups(store_.wakeups(), uid);
  const SteadyTime deadline = clock_.steady() + options_.create_wait;
  std::optional<SteadyTime> settled;
  for (;;) {
    const auto fresh = by_uid(uid);
    if (fresh && !*fresh) return Error{ErrorCode::not_found, cat("vm not found: vm ", uid)};
    if (fresh) row = **fresh;
    const Settling settling = settling_of(row);
    const SteadyTime now = clock_.steady();
    if (settling == Settling::watches && !settled) {
      settled = now + std::chrono::seconds(row.settle_seconds);
    }
    const bool done =
        settling == Settling::done || (settling == Settling::watches && settled && now >= *settled);
    if (done || now >= deadline || stopping_.stop_requested()) return answer_of(row);
    const SteadyTime until = settled ? std::min(*settled, deadline) : deadline;
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - now);
    wakeups.wait(std::clamp(left, std::chrono::milliseconds(1), longest_nap),
                 stopping_.get_token());
  }
}

}  // namespace fuse
