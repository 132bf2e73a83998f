#include <algorithm>
#include <map>

#include "base/text.h"
#include "tests/orchestrator/engine.h"

namespace fuse {
namespace {

// Agents by address, as if they were elsewhere.
struct Elsewhere {
  std::map<std::string, FakeHostAgent> agents{};
  std::vector<AgentAddress> asked{};
  std::string token = "right";

  ConnectAgent connect() {
    return [this](const AgentAddress& address) -> Result<HostAgent> {
      asked.push_back(address);
      if (address.token != token) return Error{ErrorCode::unauthorized, "unauthorized"};
      const auto found = agents.find(address.url);
      if (found == agents.end()) return Error{ErrorCode::unreachable, "refused"};
      return found->second.agent();
    };
  }
};

struct FleetWorld : Elsewhere {
  Engine engine{memory_store(), connect()};

  HostInfo enter(const std::string& id, const std::string& url) {
    return must(engine.fleet.register_host({.id = id,
                                            .url = url,
                                            .token = token,
                                            .backend = Backend::qemu,
                                            .capacity = {.vm_count = 4}}));
  }
  Environment create_on(const std::string& host, const std::string& task) {
    auto request = job_request(task);
    request.spec.host_id = host;
    return engine.create(request);
  }
};

TEST_CASE("a host elsewhere is entered, looked at and used") {
  FleetWorld world;
  FakeHostAgent& agent = world.agents["http://far:8091"];
  const HostInfo host = world.enter("far", "http://far:8091/");
  CHECK(host.url == "http://far:8091");
  CHECK(host.reachable);
  CHECK(host.capacity.vm_count == 4);
  CHECK(host.capacity.cpus > 0);
  CHECK(must(world.engine.fleet.list_hosts(0, "")).hosts.size() == 2);

  const auto environment = world.create_on("far", "a");
  world.engine.run_until_idle();
  CHECK(world.engine.get(environment.id).state == EnvironmentState::running);
  CHECK(agent.vms().count(environment.uid) == 1);
  CHECK(must(world.engine.fleet.get_host("far")).allocated.vm_count == 1);

  const auto refused = world.engine.fleet.remove_host("far");
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::conflict);
  CHECK(refused.error().message == "host still has vms assigned: fuse-a");
}

TEST_CASE("entering a host again keeps what is bound on it and its cordon") {
  FleetWorld world;
  HostCapacity capacity{.cpus = 8, .ram_mb = 8192, .storage_gb = 100, .gpus = 1};
  capacity.gpu_devices = {{.uuid = "GPU-1", .model = "A100"}};
  world.agents["http://far:8091"].set_capacity(capacity);
  (void)world.enter("far", "http://far:8091");
  auto request = job_request("g");
  request.spec.gpus = 1;
  (void)world.engine.create(request);
  must(world.engine.fleet.change_host("far", HostAction::cordon));

  const HostInfo again = world.enter("far", "http://far:8091");
  CHECK(again.state == HostState::cordoned);
  CHECK(again.allocated.gpu_device_uuids == std::vector<std::string>{"GPU-1"});
  must(world.engine.fleet.change_host("far", HostAction::uncordon));
  request.task_id = "h";
  CHECK_FALSE(world.engine.service.create(request, {.respond_async = true}).has_value());
}

TEST_CASE("a host that stops answering is said to, gets nothing new and comes back") {
  FleetWorld world;
  FakeHostAgent& agent = world.agents["http://far:8091"];
  (void)world.enter("far", "http://far:8091");
  const auto environment = world.create_on("far", "a");
  world.engine.run_until_idle();

  agent.before = [](const std::string& /*call*/) {
    return Error{ErrorCode::unreachable, "no route"};
  };
  world.engine.poller.pass();
  world.engine.clock.move(std::chrono::seconds(31));
  CHECK_FALSE(must(world.engine.fleet.get_host("far")).reachable);
  auto request = job_request("b");
  request.spec.host_id = "far";
  const auto refused = world.engine.service.create(request, {.respond_async = true});
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "pinned host cannot take this environment: host \"far\" does not answer");
  world.engine.reconciler.pass();
  world.engine.run_for(std::chrono::seconds(5));
  CHECK(world.engine.get(environment.id).state == EnvironmentState::running);

  agent.before = {};
  world.engine.poller.pass();
  CHECK(must(world.engine.fleet.get_host("far")).reachable);
  CHECK(world.engine.service.create(request, {.respond_async = true}).has_value());
}

TEST_CASE("a changed token or address is used at once") {
  FleetWorld world;
  (void)world.agents["http://far:8091"];
  (void)world.agents["http://new:8091"];
  (void)world.enter("far", "http://far:8091");
  (void)must(world.engine.hosts.find("far"));
  world.token = "newer";
  (void)world.enter("far", "http://new:8091");
  (void)must(world.engine.hosts.find("far"));
  CHECK(world.asked.back().url == "http://new:8091");
  CHECK(world.asked.back().token == "newer");
}

TEST_CASE("devices kept back by the operator stay so when the agent is asked again") {
  FleetWorld world;
  HostCapacity capacity{.cpus = 8, .ram_mb = 8192, .storage_gb = 100, .gpus = 2};
  capacity.gpu_devices = {{.uuid = "GPU-1", .model = "A100"}, {.uuid = "GPU-2", .model = "A100"}};
  world.agents["http://far:8091"].set_capacity(capacity);
  (void)must(world.engine.fleet.register_host({.id = "far",
                                               .url = "http://far:8091",
                                               .token = "right",
                                               .backend = Backend::qemu,
                                               .capacity = {.vm_count = 4, .gpus = 1}}));
  capacity.cpus = 16;
  world.agents["http://far:8091"].set_capacity(capacity);
  world.engine.poller.pass();
  const HostInfo host = must(world.engine.fleet.get_host("far"));
  CHECK(host.capacity.cpus == 16);
  CHECK(host.capacity.gpus == 1);
  ResourceSpec spec{.gpus = 2};
  const auto explanation = must(world.engine.fleet.explain(spec));
  CHECK(explanation.host_id.empty());
  REQUIRE(explanation.hosts.size() == 2);
  CHECK(explanation.hosts[0].reasons.at(0).code == "gpu-limit");
}

TEST_CASE("explain says where a spec would go and why not elsewhere, and books nothing") {
  FleetWorld world;
  (void)world.agents["http://far:8091"];
  (void)world.enter("far", "http://far:8091");
  must(world.engine.fleet.change_host("far", HostAction::cordon));
  const auto fits = must(world.engine.fleet.explain({.cpus = 1}));
  CHECK(fits.host_id == "local");
  CHECK(fits.message.empty());
  REQUIRE(fits.hosts.size() == 2);
  CHECK(fits.hosts[0].host_id == "far");
  CHECK(fits.hosts[0].reasons.at(0).code == "state");
  CHECK(fits.hosts[1].reasons.empty());
  CHECK(must(world.engine.fleet.get_host("local")).allocated.vm_count == 0);
  const auto never = must(world.engine.fleet.explain({.cpus = 1000}));
  CHECK(never.host_id.empty());
  CHECK_FALSE(never.message.empty());
  CHECK_FALSE(world.engine.fleet.explain({.gpus = -1}).has_value());
}

TEST_CASE("a host that is gone is not found") {
  FleetWorld world;
  (void)world.agents["http://far:8091"];
  (void)world.enter("far", "http://far:8091");
  must(world.engine.fleet.remove_host("far"));
  CHECK(world.engine.fleet.get_host("far").error().code == ErrorCode::not_found);
  CHECK(world.engine.fleet.remove_host("far").error().code == ErrorCode::not_found);
  CHECK(world.engine.fleet.change_host("far", HostAction::drain).error().code ==
        ErrorCode::not_found);
  CHECK(world.engine.fleet.remove_host("local").error().code == ErrorCode::conflict);
}

// A host that has been silent since it was looked at `time` ago.
void be_silent(FleetWorld& world, std::chrono::seconds time) {
  (void)world.engine.hosts.note("far", false);
  world.engine.reconciler.pass();
  world.engine.clock.move(time);
  world.engine.reconciler.pass();
}

bool was_told(const std::vector<EnvironmentEvent>& events, const std::string& message) {
  return std::ranges::any_of(
      events, [&](const EnvironmentEvent& event) { return event.message == message; });
}

TEST_CASE("environments hear of their host's silence, and go on when it was short") {
  FleetWorld world;
  (void)world.agents["http://far:8091"];
  (void)world.enter("far", "http://far:8091");
  const auto environment = world.create_on("far", "a");
  world.engine.run_until_idle();
  be_silent(world, std::chrono::seconds(899));
  CHECK(was_told(world.engine.events(environment.uid),
                 "host far does not answer; the vm may go on there"));
  CHECK(world.engine.get(environment.id).state == EnvironmentState::running);
  (void)world.engine.hosts.note("far", true);
  world.engine.reconciler.pass();
  const auto events = world.engine.events(environment.uid);
  CHECK(was_told(events, "host far answers again"));
  CHECK(events.back().duration_ms == 899'000);
  // The next silence is counted from its own beginning.
  be_silent(world, std::chrono::seconds(10));
  CHECK(world.engine.get(environment.id).state == EnvironmentState::running);
}

TEST_CASE("a host that is silent for a quarter of an hour loses its environments, not its books") {
  FleetWorld world;
  FakeHostAgent& agent = world.agents["http://far:8091"];
  (void)world.enter("far", "http://far:8091");
  const auto running = world.create_on("far", "a");
  world.engine.run_until_idle();
  const auto going = world.create_on("far", "b");
  world.engine.run_until_idle();
  (void)world.engine.hosts.note("far", false);
  CHECK_FALSE(world.engine.service.destroy(going.id));
  be_silent(world, std::chrono::seconds(900));

  const Environment lost = world.engine.get(running.uid);
  CHECK(lost.state == EnvironmentState::failed);
  CHECK(lost.error ==
        "host far has not answered for 15m0s; whether the vm still runs there is not known");
  CHECK(lost.job->state == JobState::lost);
  CHECK(world.engine.get(going.uid).state == EnvironmentState::destroyed);
  // Its task may run elsewhere, but what it holds there is not free.
  CHECK(must(world.engine.fleet.get_host("far")).allocated.vm_count == 2);
  (void)world.engine.create(job_request("a"));
  world.engine.run_until_idle();

  (void)world.engine.hosts.note("far", true);
  world.engine.reconciler.pass();
  CHECK(must(world.engine.fleet.get_host("far")).allocated.vm_count == 2);
  world.engine.clock.move(std::chrono::seconds(301));
  world.engine.reconciler.pass();
  CHECK(agent.vms().empty());
  CHECK(must(world.engine.fleet.get_host("far")).allocated.vm_count == 0);
}

TEST_CASE("a host that never comes back can be removed with what it held") {
  FleetWorld world;
  (void)world.agents["http://far:8091"];
  (void)world.enter("far", "http://far:8091");
  const auto environment = world.create_on("far", "a");
  world.engine.run_until_idle();
  be_silent(world, std::chrono::seconds(900));
  // What still holds something is kept beyond the usual time.
  world.engine.clock.move(std::chrono::hours(24 * 8));
  world.engine.reconciler.pass();
  CHECK(world.engine.get(environment.uid).state == EnvironmentState::failed);
  must(world.engine.fleet.remove_host("far"));
  world.engine.reconciler.pass();
  CHECK_FALSE(world.engine.service.get(environment.uid, true));
}

}  // namespace
}  // namespace fuse
