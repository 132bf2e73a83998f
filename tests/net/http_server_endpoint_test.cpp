#include <sys/stat.h>

#include <array>
#include <memory>
#include <thread>

#include "net/http_server.h"
#include "tests/catch.h"
#include "tests/net/wire.h"

namespace fuse {
namespace {

using namespace std::chrono_literals;

HttpResponse echo(const HttpRequest& request) {
  return text_response(200, cat(request.method, " ", request.target, " ", request.body));
}

TEST_CASE("a unix socket is 0600 and says who connects") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "control.sock";
  HttpServerOptions options;
  options.only_own_user = true;
  std::unique_ptr<TestServer> test = std::make_unique<TestServer>(
      [](const HttpRequest& request) {
        return text_response(200, cat(request.peer.uid.value(), " ", request.peer.pid.value()));
      },
      options, UnixEndpoint{path});
  CHECK(test->server->place() == cat("unix:", path.native()));
  CHECK(test->server->port() == 0);
  CHECK((fs::status(path).permissions() & fs::perms::all) ==
        (fs::perms::owner_read | fs::perms::owner_write));

  RawClient client = RawClient::unix_socket(path);
  client.send("GET / HTTP/1.1\r\n\r\n");
  CHECK(client.read_answer() == cat("200|", ::getuid(), " ", ::getpid()));

  test.reset();
  CHECK_FALSE(fs::exists(path));
}

TEST_CASE("a stale socket file is replaced, a live or foreign one is not") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "s";
  {
    // What a killed server leaves behind.
    const Fd dead(::socket(AF_UNIX, SOCK_STREAM, 0));
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path.c_str(), path.native().size() + 1);
    REQUIRE(::bind(dead.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  }
  const TestServer test(echo, {}, UnixEndpoint{path});
  NullLog log;
  const auto second = HttpServer::listen(UnixEndpoint{path}, {}, echo, log);
  REQUIRE_FALSE(second);
  CHECK(second.error().code == ErrorCode::conflict);

  const auto onto_folder = HttpServer::listen(UnixEndpoint{folder.path()}, {}, echo, log);
  REQUIRE_FALSE(onto_folder);
  CHECK(onto_folder.error().code == ErrorCode::conflict);
}

TEST_CASE("a socket's path may be longer than a socket address") {
  const TemporaryFolder folder;
  const fs::path deep = folder.path() / std::string(100, 'd');
  fs::create_directory(deep);
  const fs::path path = deep / "control.sock";
  const TestServer test(echo, {}, UnixEndpoint{path});
  CHECK(fs::is_socket(path));
  CHECK(test.server->place() == cat("unix:", path.native()));
}

TEST_CASE("a port that is taken is an error that names it") {
  const TestServer test(echo);
  NullLog log;
  const auto second =
      HttpServer::listen(TcpEndpoint{"127.0.0.1", test.server->port()}, {}, echo, log);
  REQUIRE_FALSE(second);
  CHECK(second.error().message ==
        cat("listen on 127.0.0.1:", test.server->port(), ": bind: Address already in use"));
}

TEST_CASE("the peer of a TCP connection is its address") {
  const TestServer test([](const HttpRequest& request) {
    const bool complete = request.peer.port != 0 && !request.peer.uid;
    return text_response(200, complete ? request.peer.ip : "incomplete");
  });
  RawClient client = test.connect();
  client.send("GET / HTTP/1.1\r\n\r\n");
  CHECK(client.read_answer() == "200|127.0.0.1");
}

TEST_CASE("an IPv4 client of a socket for all addresses shows its IPv4 address") {
  const TestServer test([](const HttpRequest& r) { return text_response(200, r.peer.ip); }, {},
                        TcpEndpoint{"", 0});
  RawClient client = test.connect();
  client.send("GET / HTTP/1.1\r\n\r\n");
  CHECK(client.read_answer() == "200|127.0.0.1");
}

TEST_CASE("a stop ends streams, upgrades and idle connections and lets calls finish") {
  Signal call_started;
  Signal stream_ended;
  Signal upgrade_ended;
  TestServer test([&](const HttpRequest& request) {
    HttpResponse response = text_response(200, "finished");
    if (request.path == "/call") {
      call_started.set();
      (void)wait_for_stop(request.stop);
    } else if (request.path == "/stream") {
      response.stream = [&](HttpStream& out) {
        out.write("x");
        if (wait_for_stop(out.stop())) stream_ended.set();
      };
    } else if (request.path == "/upgrade") {
      response.upgrade = HttpResponse::Upgrade{"p", [&](ByteStream& stream) {
                                                 std::array<char, 8> buffer{};
                                                 const auto got = stream.read(buffer, std::nullopt);
                                                 if (got && got->kind == ReadOutcome::Kind::end)
                                                   upgrade_ended.set();
                                               }};
    }
    return response;
  });
  RawClient idle = test.connect();
  idle.send("GET / HTTP/1.1\r\n\r\n");
  idle.read_answer();
  RawClient call = test.connect();
  call.send("GET /call HTTP/1.1\r\n\r\n");
  REQUIRE(call_started.wait());
  RawClient stream = test.connect();
  stream.send("GET /stream HTTP/1.1\r\n\r\n");
  stream.read_until("x\r\n");
  RawClient upgrade = test.connect();
  upgrade.send("GET /upgrade HTTP/1.1\r\n\r\n");
  upgrade.read_until("\r\n\r\n");

  std::thread stopper([&] { test.server->stop(watchdog); });
  CHECK(idle.read_all().empty());
  CHECK(call.read_answer() == "200|finished");
  // Cut short, it must not look whole.
  CHECK(stream.read_all().find("0\r\n\r\n") == std::string::npos);
  CHECK(upgrade.read_all().empty());
  CHECK(stream_ended.wait());
  CHECK(upgrade_ended.wait());
  call.close();
  stopper.join();
  test.server->stop(0ms);
}

TEST_CASE("a stop cuts what does not end by itself") {
  Signal writing;
  TestServer test([&](const HttpRequest&) {
    HttpResponse response;
    response.stream = [&](HttpStream& out) {
      const std::string much(1U << 20U, 'x');
      while (out.write(much)) writing.set();
    };
    return response;
  });
  RawClient client = test.connect();
  client.send("GET / HTTP/1.1\r\n\r\n");  // and reads nothing
  REQUIRE(writing.wait());
  test.server->stop(0ms);
  client.read_all();
}

TEST_CASE("a stopped server is connected to no more") {
  TestServer test(echo);
  const std::uint16_t port = test.server->port();
  test.server->stop(0ms);
  const Fd socket(::socket(AF_INET, SOCK_STREAM, 0));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  CHECK(::connect(socket.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0);
}

}  // namespace
}  // namespace fuse
