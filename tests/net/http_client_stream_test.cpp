#include <array>
#include <memory>
#include <string>
#include <thread>

#include "net/http.h"
#include "net/http_client.h"
#include "net/sse.h"
#include "orchestrator/api/json.h"
#include "tests/catch.h"
#include "tests/net/client.h"
#include "tests/net/random.h"
#include "tests/net/wire.h"

namespace fuse {
namespace {

using namespace std::chrono_literals;
using End = HttpStreamReply::End;

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
  CHECK(parse_error(404, reply->head.body).message == "no such vm");
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

}  // namespace
}  // namespace fuse
