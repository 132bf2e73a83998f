#include <nlohmann/json.hpp>

#include "orchestrator/api/json.h"
#include "tests/cmd/world.h"

namespace fuse::cmd {

TEST_CASE("environments are listed in a table, with their jobs") {
  World world;
  world.environments.environment.state = EnvironmentState::running;
  world.environments.environment.spec = {.cpus = 2, .ram_mb = 1536};
  world.environments.environment.job = ended_job(3);
  world.environments.environment.created_at = "not a time";
  CHECK(world.fuse({"environment", "list"}) == success);
  CHECK(world.out.str() ==
        "ID           STATE     JOB      HOST    SIZE             AGE\n"
        "fuse-train   running   exit 3   local   2 CPU, 1.5 GiB   -\n");
}

TEST_CASE("environments are listed as the wire has them, under every name of the command") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"environment", "list", "-o", "json"},
        {"-o", "json", "env", "list"},
        {"envs", "-o", "json", "list"},
        {"environments", "list", "--output=json"},
        {"ps", "-ojson"}}) {
    World world;
    CHECK(world.fuse(words) == success);
    EnvironmentPage page{.environments = {world.environments.environment}};
    CHECK(world.out.str() == to_json(page).dump(2) + "\n");
  }
}

TEST_CASE("filters of a list reach the orchestrator") {
  World world;
  CHECK(world.fuse({"env", "list", "--task-id", "t", "--state", "running", "--host-id", "h",
                    "--limit", "3", "--cursor", "c", "--ended"}) == success);
  CHECK(world.fuse({"ps", "-a"}) == success);
  REQUIRE(world.environments.listed.size() == 2);
  const EnvironmentFilter& filter = world.environments.listed[0];
  CHECK(filter.task_id == "t");
  CHECK(filter.state == "running");
  CHECK(filter.host_id == "h");
  CHECK(filter.limit == 3);
  CHECK(filter.cursor == "c");
  CHECK(filter.include_ended);
  CHECK(world.environments.listed[1].include_ended);
}

TEST_CASE("get shows one environment, as text and as JSON") {
  World world;
  world.environments.environment.error = "a\x1b[2Jline\nand another";
  CHECK(world.fuse({"environment", "get", "fuse-train"}) == success);
  CHECK(world.out.str().find("id          fuse-train\n") == 0);
  CHECK(world.out.str().find('\x1b') == std::string::npos);

  World json;
  CHECK(json.fuse({"environment", "get", "fuse-train", "-o", "json"}) == success);
  CHECK(json.out.str() == to_json(json.environments.environment).dump(2) + "\n");
  CHECK(json.fuse({"environment", "get", "other"}) == failed);
  CHECK(json.err.str() ==
        "error: vm not found: vm other\n"
        "  what there is: fuse ps   with those that ended: fuse ps -a\n");
}

TEST_CASE("removing asks on a terminal, and needs --yes without one") {
  World piped;
  CHECK(piped.fuse({"rm", "fuse-a"}) == wrong_usage);
  CHECK(piped.environments.destroyed.empty());
  CHECK(piped.err.str() ==
        "error: nobody can be asked whether to remove it\n  say so beforehand: --yes\n");

  World refused;
  refused.terminal.in = true;
  refused.in.str("n\n");
  CHECK(refused.fuse({"environment", "destroy", "fuse-a"}) == failed);
  CHECK(refused.environments.destroyed.empty());

  World agreed;
  agreed.terminal.in = true;
  agreed.in.str("y\n");
  CHECK(agreed.fuse({"environment", "rm", "fuse-a", "fuse-b"}) == success);
  CHECK(agreed.environments.destroyed == std::vector<std::string>{"fuse-a", "fuse-b"});

  World scripted;
  CHECK(scripted.fuse({"environment", "delete", "-y", "fuse-a"}) == success);
  CHECK(scripted.environments.destroyed == std::vector<std::string>{"fuse-a"});
}

TEST_CASE("draining and a new token are asked for by their names") {
  World world;
  CHECK(world.fuse({"environment", "drain", "fuse-train"}) == success);
  CHECK(world.environments.drained == std::vector<std::string>{"fuse-train"});
  CHECK(world.err.str().find("its job goes on") != std::string::npos);
  CHECK(world.fuse({"env", "drain", "fuse-train", "-ojson"}) == success);
  CHECK(nlohmann::json::parse(world.out.str())["state"] == "draining");
  CHECK(world.fuse({"env", "rotate-token", "fuse-train"}) == success);
  CHECK(world.environments.rotated == std::vector<std::string>{"fuse-train"});
}

TEST_CASE("watching shows each event in a line, until the end") {
  const std::vector<EnvironmentEvent> story = {
      {.state = EnvironmentState::provisioning, .updated_at = "T1"},
      {.event = "step",
       .updated_at = "T2",
       .key = "create_vm",
       .message = "start the vm",
       .duration_ms = 1500},
      {.event = "job", .updated_at = "T3", .job = ended_job(3)},
      {.state = EnvironmentState::failed, .error = "it\x1b fell", .updated_at = "T4"}};
  World world;
  world.environments.story = story;
  CHECK(world.fuse({"environment", "watch", "fuse-train"}) == failed);
  CHECK(world.out.str() ==
        "T1  state           provisioning\n"
        "T2  create vm       start the vm (1.5 s)\n"
        "T3  job             exit 3\n"
        "T4  state           failed: it  fell\n");

  World json;
  json.environments.story = {story[0], {.state = EnvironmentState::destroyed}};
  CHECK(json.fuse({"env", "follow", "fuse-train", "-ojson"}) == success);
  std::istringstream lines(json.out.str());
  std::vector<std::string> states;
  for (std::string line; std::getline(lines, line);) {
    states.push_back(nlohmann::json::parse(line)["state"]);
  }
  CHECK(states == std::vector<std::string>{"provisioning", "destroyed"});
}

}  // namespace fuse::cmd
