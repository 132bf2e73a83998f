#include "orchestrator/orchestrator.h"
#include "remote/remote_environments.h"
#include "tests/contract/environment_api_suite.h"
#include "tests/fakes/handler_http_client.h"
#include "tests/orchestrator/engine.h"

namespace fuse {
namespace {

// The whole engine with its threads, on a database in memory.
struct LocalWorld : EnvironmentWorld {
  SystemClock clock{};
  NullLog log{};
  FakeHostAgent agent{};
  std::unique_ptr<Orchestrator> orchestrator;

  LocalWorld()
      : orchestrator(must(Orchestrator::open({.key = test_key, .workers = 3}, clock, log))) {
    must(orchestrator->attach_local_host({}, agent.agent()));
    orchestrator->start();
  }
  ~LocalWorld() override { orchestrator->stop(); }
  LocalWorld(const LocalWorld&) = delete;
  LocalWorld& operator=(const LocalWorld&) = delete;
  EnvironmentApi& api() override { return orchestrator->environments(); }
  FakeHostAgent& host() override { return agent; }
};

struct RemoteWorld final : LocalWorld {
  RemoteEnvironments remote{make_handler_client(orchestrator->handler()), clock};
  EnvironmentApi& api() override { return remote; }
};

TEST_CASE("the service does what every environment api does") {
  check_environment_api([] { return std::make_unique<LocalWorld>(); });
}

TEST_CASE("the client over the handler over the service does what every environment api does") {
  check_environment_api([] { return std::make_unique<RemoteWorld>(); });
}

}  // namespace
}  // namespace fuse
