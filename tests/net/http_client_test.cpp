#include "net/http_client.h"

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "net/http.h"
#include "orchestrator/api/json.h"
#include "tests/catch.h"
#include "tests/net/client.h"
#include "tests/net/random.h"
#include "tests/net/wire.h"

namespace fuse {
namespace {

using namespace std::chrono_literals;

HttpResponse describe(const HttpRequest& request) {
  return text_response(
      200, cat(request.method, " ", request.target,
               " auth=", request.headers.get("Authorization").value_or("-"),
               " type=", request.headers.get("Content-Type").value_or("-"),
               " x=", request.headers.get("X-Empty").value_or("-"), " body=", request.body));
}

TEST_CASE("a call carries its method, target, headers and body") {
  const TestServer test(describe);
  const auto client =
      client_of({.base_url = test.url() + "/prefix/", .token = "t%41", .timeout = watchdog});

  const auto get = client->send({.target = "/a%2Fb?x=1"});
  REQUIRE(get);
  CHECK(get->status == 200);
  CHECK(get->body == "GET /prefix/a%2Fb?x=1 auth=Bearer t%41 type=- x=- body=");

  const auto post =
      client->send({.method = "POST",
                    .target = "/p",
                    .headers = {{"Content-Type", "application/json"}, {"X-Empty", ""}},
                    .body = "{}"});
  CHECK(post->body == "POST /prefix/p auth=Bearer t%41 type=application/json x= body={}");
  CHECK(client->send({.method = "POST", .target = "/p"})->body ==
        "POST /prefix/p auth=Bearer t%41 type=- x=- body=");
  CHECK(client->send({.method = "DELETE", .target = "/p"})->body ==
        "DELETE /prefix/p auth=Bearer t%41 type=- x=- body=");
  CHECK(client->send({.method = "PUT", .target = "/p", .body = std::string(3, '\0')})->body ==
        "PUT /prefix/p auth=Bearer t%41 type=- x=- body=" + std::string(3, '\0'));
  const auto head = client->send({.method = "HEAD", .target = "/"});
  CHECK(head->status == 200);
  CHECK(head->body.empty());
}

TEST_CASE("an answer of any status is a reply, with its headers") {
  const TestServer test([](const HttpRequest&) {
    HttpResponse response = error_response({ErrorCode::conflict, "in use"});
    response.headers.add("X-Request-ID", "r1");
    response.headers.add("Location", "http://elsewhere/");
    response.status = 302;
    return response;
  });
  const auto reply = client_of(test)->send({});
  REQUIRE(reply);
  CHECK(reply->status == 302);
  CHECK(reply->headers.get("x-request-id") == "r1");
  CHECK(parse_error(409, reply->body).message == "in use");
}

TEST_CASE("a large body goes there and back, byte for byte") {
  HttpServerOptions options;
  options.most_body = 8U << 20U;
  const TestServer test([](const HttpRequest& request) { return text_response(200, request.body); },
                        options);
  Random random(9);
  const std::string body = random.bytes(5U << 20U);
  const auto reply = client_of(test)->send({.method = "POST", .body = body});
  REQUIRE(reply);
  CHECK((reply->body == body));
}

TEST_CASE("connections are used again") {
  std::mutex mutex;
  std::vector<std::uint16_t> ports;
  const TestServer test([&](const HttpRequest& request) {
    const std::scoped_lock lock(mutex);
    ports.push_back(request.peer.port);
    return HttpResponse{};
  });
  const auto client = client_of(test);
  for (int i = 0; i < 5; ++i) REQUIRE(client->send({}));
  CHECK(ports == std::vector<std::uint16_t>(5, ports.at(0)));
}

TEST_CASE("a kept connection that the server closed is replaced unseen") {
  HttpServerOptions options;
  options.idle_time = 50ms;
  const TestServer test(describe, options);
  const auto client = client_of(test);
  REQUIRE(client->send({}));
  std::this_thread::sleep_for(200ms);
  CHECK(client->send({.method = "POST", .body = "x"}));
}

TEST_CASE("one client serves many threads") {
  const TestServer test(describe);
  const auto client = client_of(test);
  std::atomic<int> right = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 8; ++t) {
      threads.emplace_back([&, t] {
        for (int i = 0; i < 20; ++i) {
          const std::string body = cat(t, "-", i);
          const auto reply = client->send({.method = "POST", .body = body});
          if (reply && reply->body.ends_with("body=" + body)) ++right;
        }
      });
    }
  }
  CHECK(right == 160);
}

TEST_CASE("a server that is not there is unreachable, by name and reason") {
  std::uint16_t port = 0;
  {
    const TestServer gone(describe);
    port = gone.server->port();
  }
  const auto client = client_of({.base_url = cat("http://127.0.0.1:", port)});
  const auto reply = client->send({});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().code == ErrorCode::unreachable);
  CHECK(reply.error().message ==
        cat("cannot reach http://127.0.0.1:", port, ": Connection refused"));
  CHECK(client->place() == cat("http://127.0.0.1:", port));

  const auto stream = client->stream({}, [](std::string_view) { return true; });
  REQUIRE_FALSE(stream);
  CHECK(stream.error().message == reply.error().message);
  const auto upgrade = client->upgrade({}, "p");
  REQUIRE_FALSE(upgrade);
  CHECK(upgrade.error().message == reply.error().message);
}

TEST_CASE("a unix socket that is not there is unreachable, by name and reason") {
  const TemporaryFolder folder;
  const auto client = client_of({.unix_socket = folder.path() / "none"});
  const auto reply = client->send({});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().code == ErrorCode::unreachable);
  CHECK(reply.error().message == cat("cannot reach unix:", (folder.path() / "none").native(),
                                     ": No such file or directory"));
}

TEST_CASE("a unix socket is called, also one with a long path") {
  const TemporaryFolder folder;
  const fs::path deep = folder.path() / std::string(100, 'd');
  fs::create_directory(deep);
  for (const fs::path& path : {folder.path() / "s", deep / "s"}) {
    const TestServer test(describe, {}, UnixEndpoint{path});
    const auto client = client_of({.unix_socket = path});
    CHECK(client->send({.target = "/u"})->body.starts_with("GET /u "));
    const auto streamed = client->stream({}, [](std::string_view) { return true; });
    REQUIRE(streamed);
    CHECK(streamed->end == HttpStreamReply::End::finished);
  }
}

TEST_CASE("a server that hangs up without an answer is unreachable") {
  const TestServer test([](const HttpRequest&) {
    HttpResponse response;
    response.upgrade = HttpResponse::Upgrade{"x", [](ByteStream&) {}};
    return response;
  });
  // The 101 nobody asked for is no answer.
  const auto reply = client_of(test)->send({.timeout = 20s});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().code == ErrorCode::unreachable);
}

TEST_CASE("a call that takes too long is unreachable") {
  const TestServer test([](const HttpRequest& request) {
    (void)wait_for_stop(request.stop);
    return HttpResponse{};
  });
  const auto reply = client_of(test)->send({.timeout = 100ms});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().code == ErrorCode::unreachable);
  CHECK(reply.error().message == cat("cannot reach ", test.url(), ": no answer within 100 ms"));
}

TEST_CASE("a stop ends a call that waits, and the server notices") {
  Signal started;
  Signal noticed;
  const TestServer test([&](const HttpRequest& request) {
    started.set();
    if (wait_for_stop(request.stop)) noticed.set();
    return HttpResponse{};
  });
  const auto client = client_of(test);
  std::stop_source stop;
  std::jthread stopper([&] {
    (void)started.wait();
    stop.request_stop();
  });
  const auto reply = client->send({.stop = stop.get_token()});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().code == ErrorCode::unavailable);
  CHECK(noticed.wait());

  const auto never = client->send({.stop = stop.get_token()});
  REQUIRE_FALSE(never);
  CHECK(never.error().code == ErrorCode::unavailable);
}

TEST_CASE("an answer beyond the most bytes is refused, an error text cut") {
  const TestServer test([](const HttpRequest& request) {
    return text_response(request.path == "/error" ? 500 : 200, std::string(100000, 'x'));
  });
  const auto client = client_of({.base_url = test.url(), .most_reply = 99999, .timeout = watchdog});
  const auto reply = client->send({});
  REQUIRE_FALSE(reply);
  CHECK(reply.error().code == ErrorCode::payload_too_large);

  const auto error = client->send({.target = "/error"});
  REQUIRE(error);
  CHECK(error->body.size() == 65536);
}

TEST_CASE("what is no address makes no client") {
  CHECK_FALSE(make_http_client({.base_url = "fuse.example.com"}));
  CHECK_FALSE(make_http_client({.base_url = ""}));
}

}  // namespace
}  // namespace fuse
