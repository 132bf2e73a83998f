#include "hostmode/http.h"
#include "remote/remote_host_agent.h"
#include "tests/catch.h"
#include "tests/contract/host_agent_suite.h"
#include "tests/fakes/handler_http_client.h"
#include "tests/hostmode/agent_fixture.h"
#include "tests/net/wire.h"

namespace fuse {
namespace {

struct NearWorld : HostWorld {
  FakeQemuHost fake{};

  HostAgent host() override { return fake.agent().interfaces(); }
  [[nodiscard]] std::string folder() const override { return fake.root().native(); }
};

// The agent's HTTP API and what it needs.
struct ServedWorld : NearWorld {
  AgentMetrics metrics{};
  MemoryLog log{};
  SystemClock clock{};

  AgentSite site() {
    return {.agent = fake.agent().interfaces(),
            .metrics = metrics,
            .log = log,
            .clock = clock,
            .token = "sesame"};
  }
};

// The token is the client's, so the handler's client puts it in.
HttpHandler with_token(HttpHandler handler) {
  return [handler = std::move(handler)](const HttpRequest& request) {
    HttpRequest allowed = request;
    allowed.headers.set("Authorization", "Bearer sesame");
    return handler(allowed);
  };
}

struct HandledWorld final : ServedWorld {
  RemoteHostAgent remote{make_handler_client(with_token(make_agent_handler(site()))), clock};

  HostAgent host() override { return remote.interfaces(); }
};

struct SocketWorld final : ServedWorld {
  TestServer server{make_agent_handler(site()), agent_server_options(site())};
  std::unique_ptr<RemoteHostAgent> remote{
      connect_host_agent({.url = server.url(), .token = "sesame"}, clock).value()};

  HostAgent host() override { return remote->interfaces(); }
};

TEST_CASE("the agent in process does what every host agent does") {
  check_host_agent([] { return std::make_unique<NearWorld>(); });
}

TEST_CASE("the client over the handler over the agent does what every host agent does") {
  check_host_agent([] { return std::make_unique<HandledWorld>(); });
}

TEST_CASE("the client over a socket over the agent does what every host agent does") {
  check_host_agent([] { return std::make_unique<SocketWorld>(); });
}

TEST_CASE("the client over TLS over the agent asks for a certificate that it trusts") {
  ServedWorld world;
  const fs::path data = fs::path(FUSE_SOURCE_DIR) / "tests/net/data";
  HttpServerOptions options = agent_server_options(world.site());
  options.tls = TlsFiles{data / "server.crt", data / "server.key"};
  const TestServer server(make_agent_handler(world.site()), options);
  const auto agent_trusting = [&](const fs::path& certificate) {
    return connect_host_agent(
               {.url = server.server->place(), .token = "sesame", .ca_file = certificate},
               world.clock)
        .value();
  };
  const auto agent = agent_trusting(data / "server.crt");
  const auto health = agent->health();
  if (!health) FAIL(health.error().message);
  CHECK(health->app_name == "qemu-agent");
  const VmInfo vm = agent->interfaces().vms.create_vm({.name = "a"}).value();
  const auto session =
      agent->interfaces().guests.attach(vm.uid, {.cmd = {"echo", "hi"}, .tty = false}).value();
  CHECK((*session->read().value()).payload == "hi\n");
  REQUIRE(agent->interfaces().vms.destroy_vm(vm.uid));
  CHECK(agent_trusting(data / "other.crt")->health().error().code == ErrorCode::unreachable);
}

TEST_CASE("a wrong token is rejected in words, by every call") {
  ServedWorld world;
  const TestServer server(make_agent_handler(world.site()), agent_server_options(world.site()));
  const auto agent =
      connect_host_agent({.url = server.url(), .token = "wrong"}, world.clock).value();
  const auto rejected = [&](const auto& result) {
    REQUIRE_FALSE(result);
    CHECK(result.error().code == ErrorCode::unauthorized);
    CHECK(result.error().message == cat("host agent at ", server.url(), " rejected the token"));
  };
  const HostAgent host = agent->interfaces();
  rejected(agent->health());
  rejected(host.vms.capacity());
  rejected(host.vms.create_vm({.name = "a"}));
  rejected(host.guests.exec("a", {.cmd = {"true"}}));
  rejected(host.guests.attach("a", {}));
  rejected(host.jobs.logs("a", {}, [](std::string_view) { return true; }, {}));
}

}  // namespace
}  // namespace fuse
