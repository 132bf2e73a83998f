#pragma once

#include <memory>
#include <string>

#include "base/log.h"
#include "orchestrator/environment_service.h"
#include "orchestrator/fleet_metrics.h"
#include "orchestrator/host_poller.h"
#include "orchestrator/host_service.h"
#include "orchestrator/reconciler.h"
#include "orchestrator/sqlite.h"
#include "orchestrator/worker.h"
#include "tests/catch.h"
#include "tests/fakes/fake_clock.h"
#include "tests/fakes/fake_host_agent.h"

namespace fuse {

inline const std::string test_key = "0123456789abcdef0123456789abcdef";

template <class T>
T must(Result<T> result) {
  if (!result) FAIL(result.error().message);
  return *std::move(result);
}
inline void must(const Result<void>& result) {
  if (!result) FAIL(result.error().message);
}

// An empty database: SQLite's in memory; or, where FUSE_TEST_POSTGRES names a
// server, a schema of its own there.
OpenSql test_database();
std::unique_ptr<SqlConnection> open_test_sql();

bool on_postgres();
// With as many connections as the database allows.
std::unique_ptr<Store> pooled_store();

inline std::unique_ptr<Store> memory_store() {
  return must(Store::open(open_test_sql(), test_key));
}

inline void enter_host(Store& store, const HostInfo& info) {
  must(store.run([&](StoreTx& tx) -> Result<void> {
    if (auto done =
            tx.hosts.insert({.info = info, .declared = {.vm_count = info.capacity.vm_count}});
        !done)
      return done;
    return {};
  }));
}

inline HostInfo local_host(const HostCapacity& capacity) {
  HostInfo info{.id = "local", .backend = Backend::qemu, .arch = capacity.arch};
  info.capacity = capacity;
  info.capacity.vm_count = 16;
  return info;
}

// The engine without threads: a test takes the worker's turns itself, on a clock
// that it moves.
struct Engine {
  FakeClock clock{};
  NullLog log{};
  FakeHostAgent host{};
  std::unique_ptr<Store> store;
  HostDirectory hosts;
  Activity activity{clock};
  Metrics metrics{orchestrator_metrics()};
  EnvironmentService service;
  HostService fleet;
  std::unique_ptr<Worker> worker;
  HostPoller poller;
  Reconciler reconciler;

  explicit Engine(std::unique_ptr<Store> opened = memory_store(), const ConnectAgent& connect = {})
      : store(std::move(opened)),
        hosts(*store, connect),
        service(*store, hosts, activity, clock, {.create_wait = std::chrono::seconds(0)}),
        fleet(*store, hosts, service.fleet(), clock, {.connect = connect}),
        poller(*store, hosts, clock, log),
        reconciler({*store, hosts, activity, clock, log, metrics}, {}) {
    hosts.attach("local", host.agent());
    enter_host(*store, local_host(must(host.capacity())));
    new_worker("first");
  }

  // As after a crash: whoever worked until now is gone, and its leases run out.
  void new_worker(const std::string& owner) {
    worker = std::make_unique<Worker>(*store, hosts, clock, log, WorkerOptions{.owner = owner});
  }

  // Until nothing is due; the number of steps done.
  int run_until_idle(int most = 200) {
    int steps = 0;
    while (steps < most && worker->turn() == Worker::Turn::worked) ++steps;
    return steps;
  }
  void run_for(std::chrono::seconds time) {
    for (std::chrono::seconds at{0}; at < time; at += std::chrono::seconds(1)) {
      run_until_idle();
      clock.move(std::chrono::seconds(1));
    }
    run_until_idle();
  }

  Environment create(const CreateEnvironmentRequest& request) {
    return must(service.create(request, {.respond_async = true}));
  }
  Environment get(const std::string& id) { return must(service.get(id, true)); }
  std::vector<EnvironmentEvent> events(const std::string& uid) {
    const auto rows = must(transact<std::vector<EventRow>>(
        *store, [&](StoreTx& tx) { return tx.events.after(uid, 0, true); }));
    std::vector<EnvironmentEvent> out;
    for (const EventRow& row : rows) out.push_back(row.event);
    return out;
  }
};

inline CreateEnvironmentRequest job_request(const std::string& task_id) {
  CreateEnvironmentRequest request{.task_id = task_id};
  request.spec.image = "base";
  request.phases = Phases{.build = {}, .run = "python train.py", .workdir = "/workspace"};
  return request;
}

// What an event says, in one line.
std::string line_of(const EnvironmentEvent& event);
std::vector<std::string> lines_of(const std::vector<EnvironmentEvent>& events);

}  // namespace fuse
