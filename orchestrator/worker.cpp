#include "orchestrator/worker.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "orchestrator/deliveries.h"
#include "orchestrator/outcomes.h"

namespace fuse {

namespace {

constexpr std::chrono::milliseconds idle_look{1000};

}  // namespace

Worker::Worker(Store& store, const HostDirectory& hosts, Clock& clock, Log& log,
               WorkerOptions options)
    : store_(store), hosts_(hosts), clock_(clock), log_(log), options_(std::move(options)) {}

std::optional<Worker::Held> Worker::take_due() {
  const SteadyTime now = clock_.steady();
  return holding_.with([&](Holding& holding) -> std::optional<Held> {
    auto& waiting = holding.waiting;
    const auto found =
        std::find_if(waiting.begin(), waiting.end(), [&](const Held& h) { return h.due <= now; });
    if (found == waiting.end()) return std::nullopt;
    Held taken = std::move(*found);
    waiting.erase(found);
    return taken;
  });
}

// Ours already: something else is wanted of it by now, so it need not wait.
std::optional<Worker::Held> Worker::take_at_once(const std::string& id) {
  return holding_.with([&](Holding& holding) -> std::optional<Held> {
    auto& waiting = holding.waiting;
    const auto found = std::find_if(waiting.begin(), waiting.end(),
                                    [&](const Held& h) { return h.operation.id == id; });
    if (found == waiting.end()) return std::nullopt;
    Held taken = std::move(*found);
    waiting.erase(found);
    return taken;
  });
}

void Worker::put_back(Held held, std::chrono::milliseconds delay) {
  held.due = clock_.steady() + delay;
  holding_.with([&](Holding& holding) { holding.waiting.push_back(std::move(held)); });
}

void Worker::let_go(const Held& held) {
  holding_.with([&](Holding& holding) { holding.busy.erase(held.operation.id); });
}

Result<std::optional<Worker::Held>> Worker::claim() {
  const WallTime now = clock_.wall();
  const auto claimed = transact<std::optional<OperationRow>>(store_, [&](StoreTx& tx) {
    return tx.operations.claim(options_.owner, now, now + options_.lease);
  });
  if (!claimed) return claimed.error();
  if (!*claimed) return std::optional<Held>();
  const bool fresh =
      holding_.with([&](Holding& holding) { return holding.busy.insert((*claimed)->id).second; });
  if (!fresh) return take_at_once((*claimed)->id);
  return std::optional<Held>(Held{.operation = **claimed, .resumed = true});
}

Result<std::optional<Worker::Loaded>> Worker::load(Held& held) {
  using Maybe = std::optional<Loaded>;
  return transact<Maybe>(store_, [&](StoreTx& tx) -> Result<Maybe> {
    const auto operation = tx.operations.by_id(held.operation.id);
    if (!operation) return operation.error();
    if (!*operation || (*operation)->lease_owner != options_.owner) return Maybe();
    held.operation = **operation;
    const std::string& uid = held.operation.environment_uid;
    auto row = tx.environments.by_uid(uid);
    if (!row) return row.error();
    if (!*row) return Maybe();
    Loaded loaded{.row = **std::move(row)};
    if (held.operation.kind == OperationKind::create) {
      auto request = tx.deliveries.read(uid);
      if (!request) return request.error();
      loaded.request = *std::move(request);
      auto bindings = tx.bindings.of_environment(uid);
      if (!bindings) return bindings.error();
      loaded.bindings = *std::move(bindings);
    }
    return Maybe(std::move(loaded));
  });
}

StepOutcome Worker::step(const Held& held, const Loaded& loaded) const {
  const std::string& host = loaded.row.environment.host_id;
  const auto agent = hosts_.find(host);
  if (!agent) return {.kind = StepOutcome::Kind::retry, .error = agent.error()};
  const StepInput input{.agent = *agent,
                        .operation = held.operation,
                        .row = loaded.row,
                        .request = loaded.request,
                        .bindings = loaded.bindings,
                        .cluster = store_.cluster(),
                        .now = clock_.wall(),
                        .guest_credentials = options_.guest_credentials,
                        .resumed = held.resumed};
  switch (held.operation.kind) {
    case OperationKind::create:
      return run_create_step(input);
    case OperationKind::watch:
      return run_watch_step(input);
    case OperationKind::destroy:
      return run_destroy_step(input);
  }
  return {};
}

Result<Worker::Grip> Worker::write_in(StoreTx& tx, Held& held, const StepOutcome& outcome,
                                      const Loaded& loaded) const {
  const auto operation = tx.operations.by_id(held.operation.id);
  if (!operation) return operation.error();
  if (!*operation || (*operation)->lease_owner != options_.owner) return Grip::lost;
  const bool same =
      (*operation)->kind == held.operation.kind && (*operation)->step == held.operation.step;
  // Somebody wants it down meanwhile: what came of the step no longer matters.
  if (!same) return Grip::kept;
  auto row = tx.environments.by_uid(loaded.row.environment.uid);
  if (!row) return row.error();
  if (!*row) return Grip::lost;
  OperationRow now = **operation;
  const auto onward =
      apply_outcome(tx, now, **row, outcome, {clock_.wall(), options_.longest_wait});
  if (!onward) return onward.error();
  return *onward == Onward::goes_on ? Grip::kept : Grip::lost;
}

Result<Worker::Grip> Worker::write(Held& held, const StepOutcome& outcome, const Loaded& loaded) {
  const bool nothing_new =
      outcome.kind == StepOutcome::Kind::again && outcome.events.empty() && !outcome.change;
  if (nothing_new) return Grip::kept;
  return transact<Grip>(store_, [&](StoreTx& tx) { return write_in(tx, held, outcome, loaded); });
}

void Worker::work(Held held) {
  const auto loaded = load(held);
  if (!loaded) {
    // Without the database nothing can be done; the lease keeps others away.
    log_.error("cannot read an operation",
               {{"operation", held.operation.id}, {"error", loaded.error().message}});
    return put_back(std::move(held), idle_look);
  }
  if (!*loaded) return let_go(held);
  StepOutcome outcome = step(held, **loaded);
  if (!outcome.error.message.empty()) {
    if ((*loaded)->request) {
      outcome.error.message =
          redacted(std::move(outcome.error.message), (*loaded)->request->secrets);
    }
    log_.warning("a step failed", {{"environment", (*loaded)->row.environment.id},
                                   {"step", held.operation.step},
                                   {"error", outcome.error.message}});
  }
  const auto grip = write(held, outcome, **loaded);
  if (!grip) {
    log_.error("cannot write what came of a step", {{"operation", held.operation.id},
                                                    {"step", held.operation.step},
                                                    {"error", grip.error().message}});
    held.resumed = true;
    return put_back(std::move(held), idle_look);
  }
  if (*grip == Grip::lost) return let_go(held);
  held.resumed = false;
  put_back(std::move(held), outcome.delay);
}

Worker::Turn Worker::turn() {
  auto held = take_due();
  if (!held) {
    auto claimed = claim();
    if (!claimed) {
      log_.error("cannot look for operations", {{"error", claimed.error().message}});
      return Turn::idle;
    }
    held = *std::move(claimed);
  }
  if (!held) return Turn::idle;
  work(*std::move(held));
  return Turn::worked;
}

std::chrono::milliseconds Worker::until_due() const {
  const SteadyTime now = clock_.steady();
  return holding_.with([&](const Holding& holding) {
    std::chrono::milliseconds least = idle_look;
    for (const Held& one : holding.waiting) {
      const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(one.due - now);
      least = std::min(least, std::max(left, std::chrono::milliseconds(1)));
    }
    return least;
  });
}

void Worker::run(const std::stop_token& stop) {
  Wakeups::Subscription wakeups(store_.wakeups(), "");
  while (!stop.stop_requested()) {
    if (turn() == Turn::idle) wakeups.wait(until_due(), stop);
  }
}

void Worker::hurry() {
  const SteadyTime now = clock_.steady();
  holding_.with([&](Holding& holding) {
    for (Held& held : holding.waiting) {
      if (held.operation.kind == OperationKind::watch) held.due = now;
    }
  });
}

void Worker::renew() {
  const WallTime until = clock_.wall() + options_.lease;
  const auto ours = transact<std::vector<std::string>>(
      store_, [&](StoreTx& tx) { return tx.operations.renew(options_.owner, until); });
  if (!ours) return log_.error("cannot renew the leases", {{"error", ours.error().message}});
  adopt(*ours);
}

void Worker::adopt(const std::vector<std::string>& ids) {
  const SteadyTime now = clock_.steady();
  holding_.with([&](Holding& holding) {
    for (const std::string& id : ids) {
      if (!holding.busy.insert(id).second) continue;
      holding.waiting.push_back({.operation = {.id = id}, .due = now, .resumed = true});
    }
  });
}

void Worker::release() {
  holding_.with([](Holding& holding) { holding = {}; });
  const auto done = transact<std::vector<std::string>>(
      store_, [&](StoreTx& tx) { return tx.operations.renew(options_.owner, {}); });
  if (!done) log_.error("cannot give back the leases", {{"error", done.error().message}});
}

}  // namespace fuse
