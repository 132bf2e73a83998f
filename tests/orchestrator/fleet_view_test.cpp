#include "orchestrator/fleet_view.h"

#include <nlohmann/json.hpp>
#include <random>

#include "base/text.h"
#include "orchestrator/api/json.h"
#include "orchestrator/json_text.h"
#include "tests/orchestrator/engine.h"

namespace fuse {
namespace {

using Look = FleetView::Look;

// A database with hosts, and views of it as several processes would have them.
struct World {
  FakeClock clock{};
  std::unique_ptr<Store> store = memory_store();
  HostDirectory directory{*store};

  void enter(const std::string& id) {
    HostInfo info{.id = id, .backend = Backend::qemu};
    info.capacity = {.cpus = 8, .ram_mb = 8192, .storage_gb = 100, .vm_count = 4};
    enter_host(*store, info);
  }
  // As an environment that takes one CPU, and one device.
  void reserve(const std::string& host, const std::string& uid) {
    must(store->run([&](StoreTx& tx) -> Result<void> {
      EnvironmentRow row;
      row.environment = {.id = "fuse-" + uid, .uid = uid, .task_id = uid, .host_id = host};
      if (auto done = tx.environments.insert(row); !done) return done;
      auto done = tx.reservations.insert(
          {.environment_uid = uid, .host_id = host, .spec = {.cpus = 1, .gpus = 1}});
      if (!done) return done;
      done = tx.bindings.insert(
          {.environment_uid = uid, .host_id = host, .device_uuid = cat("GPU-", uid)});
      if (!done) return done;
      return tx.hosts.touch(host);
    }));
  }
  void release(const std::string& host, const std::string& uid) {
    must(store->run([&](StoreTx& tx) -> Result<void> {
      if (auto done = tx.reservations.release(uid); !done) return done;
      if (auto done = tx.bindings.release(uid); !done) return done;
      return tx.hosts.touch(host);
    }));
  }
};

std::string text_of(FleetView& view, Look look) {
  return must(view.use(look, [](const Fleet& fleet) {
    std::string text;
    for (const FleetHost& host : fleet) {
      text += cat(json_text(to_json(host.info)), " ", host.version, " ", host.free->whole, "\n");
    }
    return text;
  }));
}

int cpus_taken(FleetView& view, Look look) {
  return must(view.use(look, [](const Fleet& fleet) {
    int sum = 0;
    for (const FleetHost& host : fleet) sum += host.info.allocated.cpus;
    return sum;
  }));
}

TEST_CASE("a recent look may miss for a second what others did, a fresh one never") {
  World world;
  world.enter("a");
  FleetView view(*world.store, world.directory, world.clock);
  CHECK(cpus_taken(view, Look::recent) == 0);
  world.reserve("a", "one");
  CHECK(cpus_taken(view, Look::recent) == 0);
  CHECK(cpus_taken(view, Look::fresh) == 1);
  world.reserve("a", "two");
  world.clock.move(std::chrono::milliseconds(1001));
  CHECK(cpus_taken(view, Look::recent) == 2);
}

TEST_CASE("a recent look sees what was noted") {
  World world;
  world.enter("a");
  world.enter("b");
  FleetView view(*world.store, world.directory, world.clock);
  CHECK(cpus_taken(view, Look::recent) == 0);
  world.reserve("a", "one");
  world.reserve("b", "two");
  view.note_change("b");
  CHECK(cpus_taken(view, Look::recent) == 1);
  view.note_change("a");
  CHECK(cpus_taken(view, Look::recent) == 2);
  // One that is new takes a look at all.
  world.enter("c");
  world.reserve("c", "three");
  view.note_change("c");
  CHECK(cpus_taken(view, Look::recent) == 3);
}

TEST_CASE("a host is silent after three missed polls, whenever it was read") {
  World world;
  world.enter("a");
  FleetView view(*world.store, world.directory, world.clock);
  const auto reachable = [&](Look look) {
    return must(view.use(look, [](const Fleet& fleet) { return fleet.at(0).info; })).reachable;
  };
  must(world.store->run([&](StoreTx& tx) { return tx.hosts.note_seen("a", world.clock.wall()); }));
  CHECK(reachable(Look::fresh));
  world.clock.move(std::chrono::seconds(29));
  CHECK(reachable(Look::recent));
  world.clock.move(std::chrono::seconds(2));
  CHECK_FALSE(reachable(Look::recent));
  must(world.store->run([&](StoreTx& tx) { return tx.hosts.note_seen("a", world.clock.wall()); }));
  CHECK(reachable(Look::fresh));
}

TEST_CASE("what is kept in memory is what a first look finds, after any changes") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    World world;
    std::mt19937 engine(seed);
    const auto below = [&](int n) { return std::uniform_int_distribution<int>(0, n - 1)(engine); };
    FleetView view(*world.store, world.directory, world.clock);
    std::set<std::string> hosts;
    std::vector<std::pair<std::string, std::string>> reserved;
    for (int step = 0; step < 60; ++step) {
      const std::string host = cat("h", below(6));
      const bool known = hosts.contains(host);
      const bool used =
          std::ranges::any_of(reserved, [&](const auto& one) { return one.first == host; });
      switch (below(4)) {
        case 0:
          if (!known) world.enter(host);
          hosts.insert(host);
          break;
        case 1:
          if (!known) break;
          world.reserve(host, cat("e", step));
          reserved.emplace_back(host, cat("e", step));
          break;
        case 2:
          if (reserved.empty()) break;
          world.release(reserved.back().first, reserved.back().second);
          reserved.pop_back();
          break;
        default:
          if (!known || used) break;
          must(world.store->run([&](StoreTx& tx) { return tx.hosts.remove(host); }));
          hosts.erase(host);
      }
      if (below(3) > 0) continue;
      FleetView other(*world.store, world.directory, world.clock);
      REQUIRE(text_of(view, Look::fresh) == text_of(other, Look::fresh));
    }
  }
}

}  // namespace
}  // namespace fuse
