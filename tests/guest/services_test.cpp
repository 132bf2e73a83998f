#include <stop_token>
#include <thread>

#include "base/posix_host.h"
#include "tests/guest/agent_fixture.h"

namespace fuse {
namespace {

struct ServicesFixture {
  AgentFixture agent{};
  std::unique_ptr<GuestClient> client = agent.client();

  void deliver(const std::string& compose) {
    REQUIRE(client->upload({.path = "/fuse/compose.yaml", .bytes = compose}));
  }
  std::string failure() {
    const auto begun = client->begin();
    return begun ? "" : begun.error().message;
  }
};

TEST_CASE("without services nothing is brought up") {
  ServicesFixture guest;
  CHECK(guest.failure().empty());
}

TEST_CASE("services in a guest that cannot run them fail the beginning in words") {
  ServicesFixture guest;
  guest.deliver(R"({"services":{"db":{"image":"postgres"}}})");
  CHECK(guest.failure() ==
        "agent start failed: services: the image has nothing to run services with, neither "
        "podman-compose nor docker compose; one that has: fuse image bake NAME --with containers");
  // Nothing is probed of what did not begin.
  REQUIRE(
      guest.client->upload({.path = "/fuse/healthcheck.json", .bytes = R"({"exec":["true"]})"}));
  CHECK_FALSE(guest.failure().empty());
  CHECK_FALSE(fs::exists(guest.agent.root() / "fuse/health.json"));
}

TEST_CASE("a daemon that does not run is waited for, and others do not wait with it") {
  ServicesFixture guest;
  guest.deliver(R"({"services":{"db":{"image":"postgres"}}})");
  for (const char* name : {"docker", "docker-compose"}) {
    const fs::path file = guest.agent.root() / "usr/bin" / name;
    fs::create_directories(file.parent_path());
    REQUIRE(PosixHost().replace_file(file, "#!/bin/sh\n", 0755));
  }
  std::stop_source stop;
  std::jthread asker([&] { CHECK_FALSE(guest.client->begin(stop.get_token())); });
  CHECK(shell(*guest.client, "echo still here").out == "still here\n");
  stop.request_stop();
}

}  // namespace
}  // namespace fuse
