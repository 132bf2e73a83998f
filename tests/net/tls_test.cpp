#include <array>
#include <fstream>
#include <string>
#include <thread>

#include "base/certificate.h"
#include "net/http_client.h"
#include "net/http_server.h"
#include "tests/catch.h"
#include "tests/net/random.h"
#include "tests/net/wire.h"

namespace fuse {
namespace {

using namespace std::chrono_literals;

const fs::path data = fs::path(FUSE_SOURCE_DIR) / "tests/net/data";

HttpServerOptions with_tls() {
  HttpServerOptions options;
  options.most_body = 8U << 20U;
  options.tls = TlsFiles{data / "server.crt", data / "server.key"};
  return options;
}

HttpResponse answer(const HttpRequest& request) {
  HttpResponse response = text_response(200, request.peer.tls ? request.body : "not TLS");
  if (request.path == "/attach") {
    response.upgrade = HttpResponse::Upgrade{"p", [](ByteStream& stream) {
                                               std::array<char, 5000> buffer{};
                                               while (true) {
                                                 const auto got = stream.read(buffer, std::nullopt);
                                                 if (!got || got->kind != ReadOutcome::Kind::bytes)
                                                   return;
                                                 if (!stream.write({buffer.data(), got->size}))
                                                   return;
                                               }
                                             }};
  }
  return response;
}

std::unique_ptr<HttpClient> client_of(const TestServer& test, const fs::path& trusted) {
  auto client = make_http_client({.base_url = cat("https://127.0.0.1:", test.server->port()),
                                  .ca_file = trusted,
                                  .timeout = watchdog});
  REQUIRE(client);
  return *std::move(client);
}

TEST_CASE("calls go over TLS") {
  const TestServer test(answer, with_tls());
  CHECK(test.server->place() == cat("https://127.0.0.1:", test.server->port()));
  const auto client = client_of(test, data / "server.crt");
  Random random(11);
  for (int i = 0; i < 3; ++i) {
    const std::string body = random.bytes(1 + random.below(3U << 20U));
    const auto reply = client->send({.method = "POST", .body = body});
    if (!reply) FAIL(reply.error().message);
    CHECK((reply->body == body));
  }
}

TEST_CASE("an upgrade goes over TLS, in both directions at once") {
  const TestServer test(answer, with_tls());
  const auto client = client_of(test, data / "server.crt");
  auto upgraded = client->upgrade({.target = "/attach"}, "p");
  if (!upgraded) FAIL(upgraded.error().message);
  REQUIRE(upgraded->stream);
  Random random(12);
  const std::string sent = random.bytes(4U << 20U);
  std::jthread writer([&] { (void)upgraded->stream->write(sent); });
  std::string got;
  std::array<char, 7000> buffer{};
  while (got.size() < sent.size()) {
    const auto piece = upgraded->stream->read(buffer, watchdog);
    REQUIRE(piece);
    REQUIRE(piece->kind == ReadOutcome::Kind::bytes);
    got.append(buffer.data(), piece->size);
  }
  CHECK((got == sent));
}

TEST_CASE("a certificate that is not trusted is refused in words") {
  const TestServer test(answer, with_tls());
  const auto reply = client_of(test, data / "other.crt")->send({});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().code == ErrorCode::unreachable);
  INFO(reply.error().message);
  CHECK(reply.error().message.find("certificate") != std::string::npos);

  auto trusting = make_http_client(
      {.base_url = cat("https://127.0.0.1:", test.server->port()), .verify_tls = false});
  REQUIRE(trusting);
  CHECK((*trusting)->send({}));
}

TEST_CASE("a certificate that was made is trusted under its addresses and in its time") {
  const TemporaryFolder folder;
  SystemClock clock;
  const WallTime now = clock.wall();
  const auto serves = [&](const std::string& address, std::chrono::hours begun) {
    const auto made = make_self_signed({.common_name = "fuse-train",
                                        .ip_addresses = {address, "0.0.0.0"},
                                        .from = now - begun,
                                        .lifetime = std::chrono::hours(2)});
    if (!made) FAIL(made.error().message);
    CHECK(made->key.starts_with("-----BEGIN EC PRIVATE KEY-----\n"));
    std::ofstream(folder.path() / "crt") << made->certificate;
    std::ofstream(folder.path() / "key") << made->key;
    HttpServerOptions options = with_tls();
    options.tls = TlsFiles{folder.path() / "crt", folder.path() / "key"};
    const TestServer test(answer, options);
    const auto reply = client_of(test, folder.path() / "crt")->send({});
    return reply ? std::string() : reply.error().message;
  };
  CHECK(serves("127.0.0.1", std::chrono::hours(1)).empty());
  CHECK_FALSE(serves("127.0.0.2", std::chrono::hours(1)).empty());
  CHECK_FALSE(serves("127.0.0.1", std::chrono::hours(3)).empty());
  CHECK_FALSE(serves("127.0.0.1", std::chrono::hours(-1)).empty());
}

TEST_CASE("no certificate is made for a name that cannot be one") {
  CHECK_FALSE(make_self_signed({.common_name = ""}));
  CHECK_FALSE(make_self_signed({.common_name = std::string(65, 'a')}));
  CHECK_FALSE(make_self_signed({.common_name = "a", .ip_addresses = {"none"}}));
}

TEST_CASE("a server that cannot read its certificate says which file") {
  NullLog log;
  HttpServerOptions missing;
  missing.tls = TlsFiles{data / "none.crt", data / "server.key"};
  const auto none = HttpServer::listen(TcpEndpoint{}, missing, answer, log);
  REQUIRE_FALSE(none);
  CHECK(none.error().message.find("none.crt") != std::string::npos);

  HttpServerOptions mixed;
  mixed.tls = TlsFiles{data / "server.crt", data / "other.key"};
  const auto other = HttpServer::listen(TcpEndpoint{}, mixed, answer, log);
  REQUIRE_FALSE(other);
  CHECK(other.error().message.find("other.key") != std::string::npos);
}

TEST_CASE("a client that speaks no TLS is dropped, and others are not disturbed") {
  const TestServer test(answer, with_tls());
  RawClient plain = RawClient::tcp(test.server->port());
  plain.try_send("GET / HTTP/1.1\r\n\r\n");
  CHECK(plain.read_all().find("HTTP/1.1 200") == std::string::npos);
  CHECK(client_of(test, data / "server.crt")->send({}));
}

TEST_CASE("the places where certificates are looked for are tried in order") {
  CHECK(default_ca_files() == std::vector<fs::path>{"/etc/ssl/certs/ca-certificates.crt",
                                                    "/etc/pki/tls/certs/ca-bundle.crt",
                                                    "/etc/ssl/ca-bundle.pem"});
}

}  // namespace
}  // namespace fuse
