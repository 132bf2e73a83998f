#include <atomic>
#include <thread>
#include <vector>

#include "net/http_server.h"
#include "tests/catch.h"
#include "tests/net/random.h"
#include "tests/net/wire.h"

namespace fuse {
namespace {

using namespace std::chrono_literals;

HttpResponse echo(const HttpRequest& request) {
  return text_response(200, cat(request.path, " ", request.body.size()));
}

std::string error_body(std::string_view code, std::string_view message) {
  return cat(R"({"error":{"code":")", code, R"(","message":")", message, "\"}}\n");
}

TEST_CASE("a body beyond the limit is refused, told or found out") {
  HttpServerOptions options;
  options.most_body = 1000;
  options.body_limit = [](const HttpRequest& request) -> std::size_t {
    return request.path == "/login" ? 10 : 1000;
  };
  const TestServer test(echo, options);
  const auto too_large = [](std::size_t most) {
    return cat("413|", error_body("payload_too_large", cat("request body exceeds the ", most,
                                                           " byte limit for this endpoint")));
  };

  RawClient fits = test.connect();
  fits.send(cat("POST / HTTP/1.1\r\nContent-Length: 1000\r\n\r\n", std::string(1000, 'x')));
  CHECK(fits.read_answer() == "200|/ 1000");
  fits.send("POST / HTTP/1.1\r\nContent-Length: 1001\r\n\r\n");
  CHECK(fits.read_answer() == too_large(1000));
  CHECK(fits.read_all().empty());

  RawClient login = test.connect();
  login.send("POST /login HTTP/1.1\r\nContent-Length: 11\r\n\r\n12345678901");
  CHECK(login.read_answer() == too_large(10));

  RawClient chunked = test.connect();
  chunked.send("POST /login HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n123456\r\n");
  chunked.send("6\r\n123456\r\n");
  CHECK(chunked.read_answer() == too_large(10));
}

TEST_CASE("a refusal reaches a client that is still sending its body") {
  HttpServerOptions options;
  options.most_body = 10;
  const TestServer test(echo, options);
  RawClient client = test.connect();
  client.send("POST / HTTP/1.1\r\nContent-Length: 8000000\r\n\r\n");
  std::jthread sender([&] { client.try_send(std::string(8000000, 'x')); });
  CHECK(client.read_answer().starts_with("413|"));
  client.read_all();
}

TEST_CASE("a request may be refused by its head, before its body") {
  HttpServerOptions options;
  options.before_body = [](const HttpRequest& request) -> std::optional<HttpResponse> {
    if (request.headers.get("Authorization") == "Bearer t") return std::nullopt;
    return text_response(401, "unauthorized");
  };
  std::atomic<int> calls = 0;
  const TestServer test(
      [&](const HttpRequest& request) {
        ++calls;
        return echo(request);
      },
      options);
  RawClient client = test.connect();
  // Without a body the connection goes on, with one it cannot.
  client.send("GET / HTTP/1.1\r\n\r\n");
  CHECK(client.read_answer() == "401|unauthorized");
  client.send("POST / HTTP/1.1\r\nAuthorization: Bearer t\r\nContent-Length: 2\r\n\r\nxx");
  CHECK(client.read_answer() == "200|/ 2");
  client.send("POST / HTTP/1.1\r\nContent-Length: 100\r\n\r\n");
  CHECK(client.read_answer() == "401|unauthorized");
  CHECK(client.read_all().empty());
  CHECK(calls == 1);
}

TEST_CASE("a head beyond the limit is refused") {
  HttpServerOptions options;
  options.most_head = 2000;
  const TestServer test(echo, options);
  RawClient client = test.connect();
  client.send("GET / HTTP/1.1\r\nA: " + std::string(3000, 'x'));
  CHECK(client.read_answer() ==
        "431|" + error_body("invalid_argument", "request head exceeds the 2000 byte limit"));
  CHECK(client.read_all().empty());
}

TEST_CASE("a body that is cut short is refused") {
  const TestServer test(echo);
  RawClient client = test.connect();
  client.send("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\n12345");
  client.shutdown_write();
  CHECK(client.read_answer() ==
        "400|" + error_body("invalid_argument", "request body shorter than Content-Length"));
}

TEST_CASE("malformed requests are refused and their connection closed") {
  const TestServer test(echo);
  const auto status_of_answer = [&](const std::string& request) {
    RawClient client = test.connect();
    client.send(request);
    const std::string answer = client.read_all();
    return answer.size() > 12 ? answer.substr(9, 3) : answer;
  };
  CHECK(status_of_answer("nonsense\r\n\r\n") == "400");
  CHECK(status_of_answer("GET / HTTP/3.0\r\n\r\n") == "505");
  CHECK(status_of_answer("GET / HTTP/1.1\r\nA b: c\r\n\r\n") == "400");
  CHECK(status_of_answer("POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n") == "400");
  CHECK(status_of_answer("POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n") ==
        "400");
  CHECK(status_of_answer("POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n") == "501");
  CHECK(status_of_answer("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n"
                         "Content-Length: 5\r\n\r\n0\r\n\r\n") == "400");
  CHECK(status_of_answer("POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n") ==
        "400");
  CHECK(status_of_answer("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n") == "400");
}

TEST_CASE("refusals speak the service's own form") {
  HttpServerOptions options;
  options.error_answer = text_error_response;
  const TestServer test(echo, options);
  RawClient client = test.connect();
  client.send("POST / HTTP/1.1\r\nContent-Length: -1\r\n\r\n");
  CHECK(client.read_answer() == "400|invalid Content-Length");
}

TEST_CASE("a client that dribbles its head is dropped") {
  HttpServerOptions options;
  options.head_time = 200ms;
  const TestServer test(echo, options);
  RawClient client = test.connect();
  client.send("GET / HTTP/1.1\r\n");
  // Each byte is progress, and yet the whole has to come in time.
  std::jthread dribble([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && client.try_send("a")) std::this_thread::sleep_for(20ms);
  });
  CHECK(client.read_all().empty());
}

TEST_CASE("a client that says nothing is dropped") {
  HttpServerOptions options;
  options.head_time = 100ms;
  const TestServer test(echo, options);
  CHECK(test.connect().read_all().empty());
}

TEST_CASE("a client that idles after a request is dropped") {
  HttpServerOptions options;
  options.idle_time = 100ms;
  const TestServer test(echo, options);
  RawClient client = test.connect();
  client.send("GET / HTTP/1.1\r\n\r\n");
  CHECK(client.read_answer() == "200|/ 0");
  CHECK(client.read_all().empty());
}

TEST_CASE("a body has to come in time, as a whole and byte by byte") {
  HttpServerOptions whole;
  whole.body_time = 200ms;
  const TestServer strict(echo, whole);
  RawClient dribbler = strict.connect();
  dribbler.send("POST / HTTP/1.1\r\nContent-Length: 100000\r\n\r\n");
  std::jthread dribble([&](const std::stop_token& stop) {
    while (!stop.stop_requested() && dribbler.try_send("a")) std::this_thread::sleep_for(20ms);
  });
  CHECK(dribbler.read_answer().starts_with("408|"));

  HttpServerOptions stall;
  stall.body_time = 0ms;
  stall.stall_time = 100ms;
  const TestServer patient(echo, stall);
  RawClient stalled = patient.connect();
  stalled.send("POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n12");
  CHECK(stalled.read_answer() ==
        "408|" + error_body("invalid_argument", "request body did not arrive in time"));
}

TEST_CASE("a stream whose client takes nothing any more ends") {
  HttpServerOptions options;
  options.stall_time = 100ms;
  Signal ended;
  const TestServer test(
      [&](const HttpRequest&) {
        HttpResponse response;
        response.stream = [&](HttpStream& out) {
          const std::string much(1U << 20U, 'x');
          while (out.write(much)) {
          }
          ended.set();
        };
        return response;
      },
      options);
  RawClient client = test.connect();
  client.send("GET / HTTP/1.1\r\n\r\n");
  CHECK(ended.wait());
}

TEST_CASE("beyond the most connections a client is told so") {
  HttpServerOptions options;
  options.most_connections = 2;
  const TestServer test(
      [](const HttpRequest& request) {
        HttpResponse response;
        response.stream = [](HttpStream& out) {
          out.write("x");
          (void)wait_for_stop(out.stop());
        };
        return request.path == "/stream" ? response : text_response(200, "ok");
      },
      options);
  RawClient first = test.connect();
  first.send("GET /stream HTTP/1.1\r\n\r\n");
  first.read_until("x\r\n");
  RawClient second = test.connect();
  second.send("GET /stream HTTP/1.1\r\n\r\n");
  second.read_until("x\r\n");

  RawClient third = test.connect();
  CHECK(third.read_all().ends_with(error_body("unavailable", "too many connections")));
}

TEST_CASE("an idle connection makes room for a new one") {
  HttpServerOptions options;
  options.most_connections = 1;
  const TestServer test(echo, options);
  RawClient first = test.connect();
  first.send("GET /1 HTTP/1.1\r\n\r\n");
  CHECK(first.read_answer() == "200|/1 0");
  for (int round = 0; round < 20; ++round) {
    RawClient next = test.connect();
    next.send("GET /2 HTTP/1.1\r\n\r\n");
    // Between two requests the first may not count as idle yet.
    const std::string answer = next.read_answer();
    if (answer == "200|/2 0") return;
    CHECK(answer.starts_with("503|"));
  }
  FAIL("there was never room");
}

TEST_CASE("hostile bytes never take the server down") {
  HttpServerOptions options;
  options.head_time = 1s;
  options.body_time = 1s;
  const TestServer test(echo, options);
  Random random(8);
  const std::string seed =
      "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n";
  for (int round = 0; round < 200; ++round) {
    std::string bytes = seed;
    for (std::size_t n = 1 + random.below(8); n > 0; --n) {
      bytes[random.below(bytes.size())] = static_cast<char>(random.below(256));
    }
    RawClient client = test.connect();
    client.try_send(bytes);
    client.shutdown_write();
    client.read_all();
  }
  RawClient client = test.connect();
  client.send("GET /alive HTTP/1.1\r\n\r\n");
  CHECK(client.read_answer() == "200|/alive 0");
}

}  // namespace
}  // namespace fuse
