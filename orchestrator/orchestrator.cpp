#include "orchestrator/orchestrator.h"

#include <thread>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/text.h"
#include "orchestrator/environment_service.h"
#include "orchestrator/fleet_metrics.h"
#include "orchestrator/host_poller.h"
#include "orchestrator/host_service.h"
#include "orchestrator/http.h"
#include "orchestrator/postgres.h"
#include "orchestrator/reconciler.h"
#include "orchestrator/registration.h"
#include "orchestrator/sqlite.h"
#include "orchestrator/worker.h"

namespace fuse {

namespace {

constexpr std::chrono::seconds lease{60};
constexpr std::chrono::seconds between_renewals{15};
constexpr std::chrono::seconds between_passes{30};
constexpr std::chrono::seconds between_health_looks{3};
constexpr std::chrono::seconds between_polls{10};

WorkerOptions worker_options(const OrchestratorConfig& config, const std::string& owner) {
  return {.owner = owner, .lease = lease, .guest_credentials = config.guest_credentials};
}

EnvironmentServiceOptions service_options(const OrchestratorConfig& config, Metrics& metrics) {
  return {.prefix = config.prefix,
          .create_wait = config.create_wait,
          .most_startup = config.most_startup,
          .policy = config.policy,
          .metrics = &metrics,
          .guest_credentials = config.guest_credentials};
}

Result<std::unique_ptr<Store>> open_store(const OrchestratorConfig& config) {
  if (!config.database_url.empty()) {
    const auto open = [uri = config.database_url] { return open_postgres(uri); };
    const auto connections = static_cast<std::size_t>(config.connections);
    return Store::open(std::make_unique<SqlPool>(open, connections), config.key);
  }
  auto sql = open_sqlite(config.database);
  if (!sql) return sql.error();
  auto store = Store::open(*std::move(sql), config.key);
  if (!store) return store;
  // A file has one user at a time: whoever held a lease is gone.
  auto freed = (*store)->run([](StoreTx& tx) { return tx.operations.free_all(); });
  if (!freed) return freed.error();
  return store;
}

// The row of a host, new or as it was with what its agent says now.
HostRow host_row(const LocalHost& host, const std::optional<HostRow>& known,
                 const HostCapacity& capacity, WallTime now) {
  HostRow row = known.value_or(HostRow());
  if (!known) row.info.created_at = to_rfc3339(now);
  row.info.id = host.id;
  row.info.backend = Backend::qemu;
  row.info.region = host.region;
  row.info.labels = host.labels;
  row.declared = {.vm_count = host.most_vms};
  row.info.capacity = merged_capacity(row.declared, capacity);
  row.info.arch = row.info.capacity.arch;
  row.info.updated_at = to_rfc3339(now);
  row.info.last_seen = to_rfc3339(now);
  row.seen = now;
  return row;
}

}  // namespace

struct Orchestrator::Parts {
  Parts(OrchestratorConfig given, std::unique_ptr<Store> opened, Clock& the_clock, Log& the_log)
      : config(std::move(given)),
        clock(the_clock),
        log(the_log),
        store(std::move(opened)),
        directory(*store, config.connect),
        activity(clock),
        callers(*store, clock, config.callers),
        metrics(orchestrator_metrics()),
        service(*store, directory, activity, clock, service_options(config, metrics)),
        hosts(*store, directory, service.fleet(), clock, {config.connect, config.policy}),
        worker(*store, directory, clock, log, worker_options(config, owner)),
        poller(*store, directory, clock, log),
        reconciler({*store, directory, activity, clock, log, metrics},
                   {.retention = config.retention}) {}

  // Whether this process is the one that reconciles, for the next few passes.
  bool reconciles() {
    const WallTime now = clock.wall();
    const auto taken = transact<LeaseTable::Taken>(*store, [&](StoreTx& tx) {
      return tx.leases.take("reconcile", owner, now, now + 3 * between_passes);
    });
    if (!taken) log.error("cannot take the lease", {{"error", taken.error().message}});
    return taken && *taken == LeaseTable::Taken::yes;
  }
  // A pass when one is due; in between, whether somebody who waits for a health
  // check can be told.
  void reconcile() {
    if (clock.steady() >= next_pass) {
      next_pass = clock.steady() + between_passes;
      reconciles_now = reconciles();
      if (reconciles_now) reconciler.pass();
    } else if (reconciles_now) {
      reconciler.look_for_health();
    }
  }
  void keep_activity() {
    const std::vector<std::string> active = activity.take_news();
    if (active.empty()) return;
    const WallTime now = clock.wall();
    auto kept = store->run([&](StoreTx& tx) -> Result<void> {
      for (const std::string& uid : active) {
        if (auto done = tx.environments.note_active(uid, now); !done) return done;
      }
      return {};
    });
    if (!kept) log.error("cannot note what is active", {{"error", kept.error().message}});
  }

  OrchestratorConfig config;
  Clock& clock;
  Log& log;
  std::string owner = random_hex(16);  // of leases; nobody else's
  std::unique_ptr<Store> store;
  HostDirectory directory;
  Activity activity;
  Callers callers;
  Metrics metrics;
  EnvironmentService service;
  HostService hosts;
  Worker worker;
  HostPoller poller;
  Reconciler reconciler;
  SteadyTime next_pass{};  // this and the next: of the thread that reconciles
  bool reconciles_now = false;
  std::vector<std::jthread> threads;
};

Orchestrator::Orchestrator(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}

Orchestrator::~Orchestrator() {
  stop();
}

Result<std::unique_ptr<Orchestrator>> Orchestrator::open(OrchestratorConfig config, Clock& clock,
                                                         Log& log) {
  auto store = open_store(config);
  if (!store) return store.error();
  auto parts = std::make_unique<Parts>(std::move(config), *std::move(store), clock, log);
  return std::unique_ptr<Orchestrator>(new Orchestrator(std::move(parts)));
}

Result<void> Orchestrator::attach_local_host(const LocalHost& host, HostAgent agent) {
  const auto capacity = agent.vms.capacity();
  if (!capacity) return in_context(cat("host ", host.id), capacity.error());
  const WallTime now = parts_->clock.wall();
  auto entered = parts_->store->run([&](StoreTx& tx) -> Result<void> {
    const auto known = tx.hosts.to_change(host.id);
    if (!known) return known.error();
    const bool is_new = !known->has_value();
    const HostRow row = host_row(host, *known, *capacity, now);
    return is_new ? tx.hosts.insert(row) : tx.hosts.update(row);
  });
  if (!entered) return entered;
  parts_->directory.attach(host.id, agent, HostDirectory::Users::we_alone);
  parts_->store->wakeups().notify_all();
  return {};
}

void Orchestrator::start() {
  if (!parts_->threads.empty()) return;
  Parts& parts = *parts_;
  for (std::int32_t i = 0; i < parts.config.workers; ++i) {
    parts.threads.emplace_back([&parts](const std::stop_token& stop) { parts.worker.run(stop); });
  }
  const auto every = [&parts](std::chrono::milliseconds time, auto action) {
    parts.threads.emplace_back([&parts, time, action](const std::stop_token& stop) {
      Wakeups nobody;
      Wakeups::Subscription pause(nobody, "");
      while (!stop.stop_requested()) {
        action(parts);
        pause.wait(time, stop);
      }
    });
  };
  every(between_renewals, [](Parts& p) {
    p.worker.renew();
    p.keep_activity();
  });
  every(between_polls, [](Parts& p) { p.poller.pass(); });
  every(between_health_looks, [](Parts& p) { p.reconcile(); });
}

void Orchestrator::look_now() {
  parts_->worker.hurry();
  parts_->store->wakeups().notify_all();
}

void Orchestrator::stop() {
  parts_->service.stop();
  if (parts_->threads.empty()) return;
  for (std::jthread& thread : parts_->threads) thread.request_stop();
  parts_->threads.clear();
  parts_->worker.release();
}

EnvironmentApi& Orchestrator::environments() {
  return parts_->service;
}

HostApi& Orchestrator::hosts() {
  return parts_->hosts;
}

HttpHandler Orchestrator::handler() {
  return make_api_handler({.environments = parts_->service,
                           .hosts = parts_->hosts,
                           .callers = parts_->callers,
                           .metrics = parts_->metrics,
                           .clock = parts_->clock,
                           .log = parts_->log});
}

const std::string& Orchestrator::cluster() const {
  return parts_->store->cluster();
}

}  // namespace fuse
