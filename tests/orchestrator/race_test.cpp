// Many callers at once, on as many connections as the database allows.  Each test
// fails when the guard that it is about is taken out: the unique indexes and the
// host's version.

#include <atomic>
#include <set>
#include <thread>

#include "base/text.h"
#include "tests/orchestrator/engine.h"

namespace fuse {
namespace {

constexpr int callers = 8;

template <class F>
void at_once(F&& work) {
  std::atomic<int> ready{0};
  std::vector<std::jthread> threads;
  for (int i = 0; i < callers; ++i) {
    threads.emplace_back([&, i] {
      ++ready;
      while (ready < callers) std::this_thread::yield();
      work(i);
    });
  }
}

TEST_CASE("no device is bound twice, however many ask for it at once") {
  Engine engine(pooled_store());
  HostCapacity capacity{.cpus = 256, .ram_mb = 1 << 20, .storage_gb = 1 << 20, .gpus = 4};
  for (const char* uuid : {"GPU-1", "GPU-2", "GPU-3", "GPU-4"}) {
    capacity.gpu_devices.push_back({.uuid = uuid, .model = "A100"});
  }
  engine.host.set_capacity(capacity);
  engine.poller.pass();
  Locked<std::vector<Environment>> made;
  Locked<std::vector<Error>> refused;
  at_once([&](int caller) {
    for (int i = 0; i < 3; ++i) {
      auto request = job_request(cat("t", caller, '-', i));
      request.spec.gpus = 1;
      auto environment = engine.service.create(request, {.respond_async = true});
      if (environment) {
        made.with([&](auto& all) { all.push_back(*environment); });
      } else {
        refused.with([&](auto& all) { all.push_back(environment.error()); });
      }
    }
  });
  std::set<std::string> bound;
  made.with([&](const auto& all) {
    CHECK(all.size() == 4);
    for (const Environment& one : all) {
      REQUIRE(one.gpu_device_uuids.size() == 1);
      CHECK(bound.insert(one.gpu_device_uuids[0]).second);
    }
  });
  refused.with([](const auto& all) {
    for (const Error& error : all) {
      INFO(error.message);
      CHECK(error.code == ErrorCode::unavailable);
      CHECK(error.details.at("reason") == "placement");
    }
  });
  CHECK(must(engine.fleet.get_host("local")).allocated.gpu_device_uuids.size() == 4);
}

TEST_CASE("one of many that ask for the same task at once wins, the others are told") {
  Engine engine(pooled_store());
  std::atomic<int> won{0};
  std::atomic<int> told{0};
  at_once([&](int /*caller*/) {
    const auto made = engine.service.create(job_request("one"), {.respond_async = true});
    if (made) ++won;
    if (!made && made.error().code == ErrorCode::conflict) {
      ++told;
      CHECK(made.error().message ==
            "task already assigned: task one already assigned to vm fuse-one");
    }
  });
  CHECK(won == 1);
  CHECK(told == callers - 1);
}

TEST_CASE("a host is never given more than it has, however many ask at once") {
  Engine engine(pooled_store());
  engine.host.set_capacity({.cpus = 5, .ram_mb = 1 << 20, .storage_gb = 1 << 20});
  engine.poller.pass();
  std::atomic<int> won{0};
  at_once([&](int caller) {
    auto request = job_request(cat("c", caller));
    request.spec.cpus = 2;
    if (engine.service.create(request, {.respond_async = true})) ++won;
  });
  CHECK(won == 2);
  CHECK(must(engine.fleet.get_host("local")).allocated.cpus == 4);
}

TEST_CASE("workers that share a database do each step once") {
  Engine engine(pooled_store());
  constexpr int environments = 6;
  for (int i = 0; i < environments; ++i) (void)engine.create(job_request(cat("w", i)));
  at_once([&](int caller) {
    Worker worker(*engine.store, engine.hosts, engine.clock, engine.log,
                  {.owner = cat("worker ", caller)});
    for (int idle = 0; idle < 20;) idle = worker.turn() == Worker::Turn::idle ? idle + 1 : 0;
  });
  CHECK(engine.host.made() == environments);
  CHECK(engine.host.violations().empty());
}

TEST_CASE("a cordon is not lost to a look at the host that happens at the same time") {
  Engine engine(pooled_store());
  at_once([&](int caller) {
    HostPoller poller(*engine.store, engine.hosts, engine.clock, engine.log);
    if (caller % 2 == 0) {
      engine.host.set_capacity({.cpus = 8 + caller, .ram_mb = 4096, .storage_gb = 100});
      poller.pass();
    } else {
      must(engine.fleet.change_host("local", HostAction::cordon));
    }
  });
  CHECK(must(engine.fleet.get_host("local")).state == HostState::cordoned);
}

}  // namespace
}  // namespace fuse
