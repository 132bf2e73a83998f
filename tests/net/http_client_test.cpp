#include "net/http_client.h"

#include <array>
#include <atomic>
#include <thread>
#include <vector>

#include "net/http.h"
#include "net/sse.h"
#include "tests/catch.h"
#include "tests/net/random.h"
#include "tests/net/wire.h"

namespace fuse {
namespace {

using namespace std::chrono_literals;
using End = HttpStreamReply::End;

std::unique_ptr<HttpClient> client_of(HttpClientOptions options) {
  auto client = make_http_client(std::move(options));
  if (!client) FAIL(client.error().message);
  return *std::move(client);
}

std::unique_ptr<HttpClient> client_of(const TestServer& test) {
  return client_of({.base_url = test.url(), .timeout = watchdog});
}

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
  CHECK(error_of_answer(409, reply->body).message == "in use");
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
    CHECK(streamed->end == End::finished);
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

TEST_CASE("a stream is handed on as it comes, and ends with the server") {
  Signal go_on;
  const TestServer test([&](const HttpRequest&) {
    HttpResponse response;
    response.headers.set("Content-Type", "text/event-stream");
    response.stream = [&](HttpStream& out) {
      out.write(encode_sse({"1", "a"}));
      if (go_on.wait()) out.write(encode_sse({"2", "b"}));
    };
    return response;
  });
  SseParser parser;
  std::string seen;
  const auto reply = client_of(test)->stream({}, [&](std::string_view bytes) {
    const auto events = parser.feed(bytes);
    for (const SseEvent& event : *events) seen += cat(event.id, event.data, " ");
    go_on.set();
    return true;
  });
  REQUIRE(reply);
  CHECK(reply->end == End::finished);
  CHECK(reply->head.status == 200);
  CHECK(reply->head.headers.get("content-type") == "text/event-stream");
  CHECK(seen == "1a 2b ");
}

TEST_CASE("a refused stream is a reply with its body, and the sink sees nothing") {
  const TestServer test([](const HttpRequest&) {
    return error_response({ErrorCode::not_found, "no such vm"});
  });
  int pieces = 0;
  const auto reply = client_of(test)->stream({}, [&](std::string_view) { return ++pieces > 0; });
  REQUIRE(reply);
  CHECK(reply->head.status == 404);
  CHECK(error_of_answer(404, reply->head.body).message == "no such vm");
  CHECK(pieces == 0);
}

// A stream that writes once and then waits.
HttpResponse one_then_quiet(Signal& ended) {
  HttpResponse response;
  response.stream = [&ended](HttpStream& out) {
    out.write("x");
    if (wait_for_stop(out.stop())) ended.set();
  };
  return response;
}

TEST_CASE("a sink and a stop token end a stream, and the server notices") {
  Signal first;
  Signal second;
  const TestServer test([&](const HttpRequest& request) {
    return one_then_quiet(request.path == "/1" ? first : second);
  });
  const auto client = client_of(test);
  const auto by_sink = client->stream({.target = "/1"}, [](std::string_view) { return false; });
  REQUIRE(by_sink);
  CHECK(by_sink->end == End::stopped);
  CHECK(first.wait());

  std::stop_source stop;
  std::jthread stopper;
  const auto by_token =
      client->stream({.target = "/2", .stop = stop.get_token()}, [&](std::string_view) {
        stopper = std::jthread([&] { stop.request_stop(); });
        return true;
      });
  REQUIRE(by_token);
  CHECK(by_token->end == End::stopped);
  CHECK(second.wait());
}

TEST_CASE("a stream that goes silent is lost") {
  Signal ended;
  const TestServer test([&](const HttpRequest&) { return one_then_quiet(ended); });
  const auto reply =
      client_of(test)->stream({.idle_timeout = 100ms}, [](std::string_view) { return true; });
  REQUIRE(reply);
  CHECK(reply->end == End::lost);
  CHECK(reply->why == cat(test.url(), " sent nothing for 100 ms"));
  CHECK(ended.wait());
}

TEST_CASE("a stream that is cut in the middle is lost, not finished") {
  Signal ended;
  TestServer test([&](const HttpRequest&) { return one_then_quiet(ended); });
  std::jthread stopper;
  const auto reply = client_of(test)->stream({}, [&](std::string_view) {
    if (!stopper.joinable()) stopper = std::jthread([&] { test.server->stop(watchdog); });
    return true;
  });
  REQUIRE(reply);
  CHECK(reply->end == End::lost);
  CHECK_FALSE(reply->why.empty());
}

TEST_CASE("an upgrade keeps the early bytes of both sides") {
  const TestServer test([](const HttpRequest& request) {
    HttpResponse response;
    const std::string asked =
        cat(request.headers.get("Upgrade").value_or("-"), " ",
            request.headers.get("Authorization").value_or("-"), " ", request.target);
    response.upgrade = HttpResponse::Upgrade{"fuse-attach/1", [asked](ByteStream& stream) {
                                               (void)stream.write(cat("welcome ", asked, "\n"));
                                               std::array<char, 100> buffer{};
                                               while (true) {
                                                 const auto got = stream.read(buffer, std::nullopt);
                                                 if (!got || got->kind != ReadOutcome::Kind::bytes)
                                                   return;
                                                 (void)stream.write({buffer.data(), got->size});
                                               }
                                             }};
    return response;
  });
  const TemporaryFolder folder;
  const auto client = client_of({.base_url = test.url() + "/p", .token = "t"});
  auto upgraded = client->upgrade({.target = "/attach?tty=1"}, "fuse-attach/1");
  REQUIRE(upgraded);
  REQUIRE(upgraded->reply.status == 101);
  REQUIRE(upgraded->stream);
  ByteStream& stream = *upgraded->stream;
  const auto read_line = [&] {
    std::string line;
    std::array<char, 1> c{};
    while (line.empty() || line.back() != '\n') {
      const auto got = stream.read(c, watchdog);
      REQUIRE(got);
      REQUIRE(got->kind == ReadOutcome::Kind::bytes);
      line += c[0];
    }
    return line;
  };
  CHECK(read_line() == "welcome fuse-attach/1 Bearer t /p/attach?tty=1\n");
  REQUIRE(stream.write("echo\n"));
  CHECK(read_line() == "echo\n");
  std::array<char, 1> none{};
  CHECK(stream.read(none, 0ms)->kind == ReadOutcome::Kind::timed_out);

  std::jthread closer([&] { stream.close(); });
  CHECK(stream.read(none, watchdog)->kind == ReadOutcome::Kind::end);
}

TEST_CASE("much goes through an upgrade in both directions at once") {
  const TestServer test([](const HttpRequest&) {
    HttpResponse response;
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
    return response;
  });
  const auto client = client_of(test);
  auto upgraded = client->upgrade({}, "p");
  REQUIRE(upgraded);
  REQUIRE(upgraded->stream);
  Random random(10);
  const std::string sent = random.bytes(8U << 20U);
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

TEST_CASE("an upgrade that is refused is a reply with its body") {
  const TestServer test([](const HttpRequest& request) {
    if (request.path == "/chunked") {
      HttpResponse response{.status = 503};
      response.stream = [](HttpStream& out) {
        out.write("not ");
        out.write("now");
      };
      return response;
    }
    return text_response(404, "vm not found");
  });
  const auto client = client_of(test);
  const auto refused = client->upgrade({}, "p");
  REQUIRE(refused);
  CHECK_FALSE(refused->stream);
  CHECK(refused->reply.status == 404);
  CHECK(refused->reply.body == "vm not found");

  const auto chunked = client->upgrade({.target = "/chunked"}, "p");
  REQUIRE(chunked);
  CHECK(chunked->reply.status == 503);
  CHECK(chunked->reply.body == "not now");
}

TEST_CASE("an upgrade goes over a unix socket") {
  const TemporaryFolder folder;
  const TestServer test(
      [](const HttpRequest&) {
        HttpResponse response;
        response.upgrade =
            HttpResponse::Upgrade{"p", [](ByteStream& stream) { (void)stream.write("hello"); }};
        return response;
      },
      {}, UnixEndpoint{folder.path() / "s"});
  const auto client = client_of({.unix_socket = folder.path() / "s"});
  auto upgraded = client->upgrade({}, "p");
  REQUIRE(upgraded);
  REQUIRE(upgraded->stream);
  std::string got;
  std::array<char, 16> buffer{};
  while (true) {
    const auto piece = upgraded->stream->read(buffer, watchdog);
    REQUIRE(piece);
    if (piece->kind != ReadOutcome::Kind::bytes) break;
    got.append(buffer.data(), piece->size);
  }
  CHECK(got == "hello");
}

TEST_CASE("a stop ends an upgrade whose server does not answer") {
  Signal started;
  const TestServer test([&](const HttpRequest& request) {
    started.set();
    (void)wait_for_stop(request.stop);
    return HttpResponse{};
  });
  std::stop_source stop;
  std::jthread stopper([&] {
    (void)started.wait();
    stop.request_stop();
  });
  const auto client = client_of(test);
  const auto upgraded = client->upgrade({.stop = stop.get_token()}, "p");
  REQUIRE_FALSE(upgraded);
  CHECK(upgraded.error().code == ErrorCode::unavailable);

  const auto late = client->upgrade({.timeout = 100ms}, "p");
  REQUIRE_FALSE(late);
  CHECK(late.error().message == cat("cannot reach ", test.url(), ": no answer within 100 ms"));
}

TEST_CASE("what is no address makes no client") {
  CHECK_FALSE(make_http_client({.base_url = "fuse.example.com"}));
  CHECK_FALSE(make_http_client({.base_url = ""}));
}

}  // namespace
}  // namespace fuse
