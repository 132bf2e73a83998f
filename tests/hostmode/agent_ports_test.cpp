#include <sys/socket.h>

#include "base/text.h"
#include "hostmode/public_host.h"
#include "tests/catch.h"
#include "tests/hostmode/agent_fixture.h"
#include "tests/net/wire.h"

namespace fuse {
namespace {

// A port of loopback that is free, as are some above it.
std::int32_t free_port() {
  const TestServer server([](const HttpRequest&) { return HttpResponse{}; });
  return server.server->port();
}

std::int32_t port_of(const VmInfo& vm) {
  return static_cast<std::int32_t>(
      parse_int(std::string_view(vm.url).substr(vm.url.rfind(':') + 1)).value_or(0));
}

}  // namespace

TEST_CASE("an IP address or a DNS name can be a public host, and nothing else") {
  for (const char* const good :
       {"203.0.113.7", "2001:db8::1", "::1", "gpu-1", "gpu-1.example.org", "a", "1a.b"}) {
    INFO(good);
    CHECK(is_public_host(good));
  }
  for (const char* const bad : {"", " ", "a b", "http://a", "a:80", "[2001:db8::1]", "a/", "-a",
                                "a-", "a..b", ".a", "300.1.1.1", "1.2.3", "ü", "a_b"}) {
    INFO(bad);
    CHECK_FALSE(is_public_host(bad));
  }
  CHECK_FALSE(is_public_host(std::string(64, 'a')));
  CHECK(authority_of("203.0.113.7", 80) == "203.0.113.7:80");
  CHECK(authority_of("2001:db8::1", 80) == "[2001:db8::1]:80");
}

TEST_CASE("a probed public host is one, and not loopback") {
  const auto host = probe_public_host();
  if (!host) {
    CHECK(host.error().message.find("PUBLIC_HOST") != std::string::npos);
    return;
  }
  CHECK(is_public_host(*host));
  CHECK_FALSE(host->starts_with("127."));
  CHECK(*host != "::1");
}

TEST_CASE("each VM has an address of its own, which stays and is given back") {
  FakeQemuHost fake;
  fake.config.ports.public_host = "gpu-1.example.org";
  fake.config.ports.vm_port_base = free_port();
  const VmInfo one = fake.create("one");
  const VmInfo two = fake.create("two");
  CHECK(one.url.starts_with("gpu-1.example.org:"));
  CHECK(port_of(one) > fake.config.ports.vm_port_base);
  CHECK(port_of(two) > port_of(one));
  CHECK(fake.agent().get_vm("one").value().url == one.url);
  CHECK(fake.agent().list_vms("two").value().at(0).url == two.url);

  // Exposed ports come beside it.
  const auto endpoints = fake.agent().start_agent("one", {.expose = {{8080, "http"}}});
  REQUIRE(endpoints);
  REQUIRE(endpoints->size() == 1);
  CHECK((*endpoints)[0].url == cat("gpu-1.example.org:", (*endpoints)[0].host_port));
  CHECK(fake.agent().get_vm("one").value().url == one.url);

  // The next agent finds it, under the name that the host has by then.
  fake.drop_agent();
  fake.config.ports.public_host = "2001:db8::1";
  CHECK(fake.agent().get_vm("one").value().url == cat("[2001:db8::1]:", port_of(one)));

  REQUIRE(fake.agent().destroy_vm("one"));
  CHECK(port_of(fake.create("three")) == port_of(one));
}

TEST_CASE("a port that somebody has is passed over, and a host without a base has no addresses") {
  FakeQemuHost fake;
  const TestServer holder([](const HttpRequest&) { return HttpResponse{}; });
  fake.config.ports.vm_port_base = holder.server->port() - 1;
  CHECK(port_of(fake.create("one")) > holder.server->port());
  fake.drop_agent();
  fake.config.ports.vm_port_base = 0;
  CHECK(fake.agent().get_vm("one").value().url.empty());
  CHECK(fake.create("two").url.empty());
}

}  // namespace fuse
