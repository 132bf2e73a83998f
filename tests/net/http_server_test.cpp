#include "net/http_server.h"

#include <array>
#include <atomic>
#include <charconv>
#include <stdexcept>
#include <thread>
#include <vector>

#include "tests/catch.h"
#include "tests/net/random.h"
#include "tests/net/wire.h"

namespace fuse {
namespace {

using namespace std::chrono_literals;

std::string chunk_of(const std::string& bytes) {
  std::array<char, 16> size{};
  const auto end = std::to_chars(size.begin(), size.end(), bytes.size(), 16).ptr;
  return cat(std::string_view(size.begin(), end), "\r\n", bytes, "\r\n");
}

// Says back what it was asked.
HttpResponse echo(const HttpRequest& request) {
  return text_response(200, cat(request.method, " ", request.target, " ", request.body));
}

TEST_CASE("several requests go over one connection, also sent ahead") {
  const TestServer test(echo);
  RawClient client = test.connect();

  client.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(client.read_answer() == "200|GET /a ");
  client.send(
      "POST /b HTTP/1.1\r\nContent-Length: 3\r\n\r\nxyz"
      "\r\nPUT /c HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"
      "DELETE /d?e=f HTTP/1.1\r\n\r\n");
  CHECK(client.read_answer() == "200|POST /b xyz");
  CHECK(client.read_answer() == "200|PUT /c hi");
  CHECK(client.read_answer() == "200|DELETE /d?e=f ");
}

TEST_CASE("requests are read however they are cut") {
  const TestServer test(echo);
  RawClient client = test.connect();
  Random random(7);
  for (int round = 0; round < 30; ++round) {
    const std::string body = random.of("abc\r\n0", random.below(60));
    std::string request =
        cat("POST /x HTTP/1.1\r\nContent-Length: ", body.size(), "\r\n\r\n", body);
    if (round % 2 == 1) {
      request = "POST /x HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
      for (const std::string& chunk : random.pieces(body, 9)) request += chunk_of(chunk);
      request += "0\r\n\r\n";
    }
    for (const std::string& piece : random.pieces(request, 1 + random.below(20))) {
      client.send(piece);
    }
    CHECK(client.read_answer() == cat("200|POST /x ", body));
  }
}

TEST_CASE("a POST without a length has no body and is answered") {
  const TestServer test(echo);
  RawClient client = test.connect();
  client.send("POST /p HTTP/1.1\r\nHost: x\r\n\r\n");
  CHECK(client.read_answer() == "200|POST /p ");
}

TEST_CASE("the head of an answer is complete") {
  HttpServerOptions options;
  options.headers.set("Server", "fuse-test/1");
  const TestServer test(
      [](const HttpRequest&) {
        HttpResponse response = json_response(201, "{}");
        response.headers.add("X-Request-ID", "abc");
        return response;
      },
      options);
  RawClient client = test.connect();
  client.send("GET / HTTP/1.1\r\n\r\n");
  const std::string head = client.read_until("\r\n\r\n");

  CHECK(head.starts_with("HTTP/1.1 201 Created\r\n"));
  CHECK(head.find("\r\nDate: ") != std::string::npos);
  CHECK(head.find(" GMT\r\n") != std::string::npos);
  CHECK(head.find("\r\nServer: fuse-test/1\r\n") != std::string::npos);
  CHECK(head.find("\r\nContent-Type: application/json\r\n") != std::string::npos);
  CHECK(head.find("\r\nX-Request-ID: abc\r\n") != std::string::npos);
  CHECK(head.find("\r\nContent-Length: 3\r\n") != std::string::npos);  // "{}" and a newline
  for (const char* absent : {"Connection:", "Keep-Alive:", "Accept-Ranges:"}) {
    CHECK(head.find(absent) == std::string::npos);
  }
}

TEST_CASE("HEAD gets the head alone, 204 neither body nor length") {
  const TestServer test([](const HttpRequest& request) {
    return request.path == "/none" ? HttpResponse{.status = 204, .body = "dropped"}
                                   : text_response(200, "12345");
  });
  RawClient client = test.connect();
  client.send("HEAD / HTTP/1.1\r\n\r\nGET /none HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\n\r\n");
  CHECK(client.read_until("\r\n\r\n").find("Content-Length: 5") != std::string::npos);
  const std::string none = client.read_until("\r\n\r\n");
  CHECK(none.starts_with("HTTP/1.1 204 No Content"));
  CHECK(none.find("Content-Length") == std::string::npos);
  CHECK(client.read_answer() == "200|12345");
}

TEST_CASE("a connection is closed when the client asks for it") {
  const TestServer test(echo);
  RawClient client = test.connect();
  client.send("GET / HTTP/1.1\r\nConnection: Close\r\n\r\n");
  CHECK(client.read_all().find("\r\nConnection: close\r\n") != std::string::npos);

  RawClient old = test.connect();
  old.send("GET / HTTP/1.0\r\n\r\n");
  CHECK(old.read_all().ends_with("GET / "));
}

TEST_CASE("a handler that throws is answered 500 without its words") {
  const TestServer test([](const HttpRequest& request) -> HttpResponse {
    if (request.path == "/odd") throw 7;
    throw std::runtime_error("secret");
  });
  RawClient client = test.connect();
  client.send("GET / HTTP/1.1\r\n\r\nGET /odd HTTP/1.1\r\n\r\n");
  const std::string wanted = R"(500|{"error":{"code":"internal","message":"internal error"}})"
                             "\n";
  CHECK(client.read_answer() == wanted);
  CHECK(client.read_answer() == wanted);
  CHECK(test.log.lines().find("error=secret") != std::string::npos);
}

TEST_CASE("an Expect is answered before the body is read") {
  const TestServer test(echo);
  RawClient client = test.connect();
  client.send("POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: 100-continue\r\n\r\n");
  CHECK(client.read_until("\r\n\r\n") == "HTTP/1.1 100 Continue\r\n\r\n");
  client.send("ok");
  CHECK(client.read_answer() == "200|POST / ok");

  client.send("POST / HTTP/1.1\r\nContent-Length: 2\r\nExpect: a-pony\r\n\r\n");
  CHECK(client.read_all().starts_with("HTTP/1.1 417 "));
}

TEST_CASE("a stream is sent in chunks as they are written") {
  Signal go_on;
  Expectations handler;
  const TestServer test([&](const HttpRequest&) {
    HttpResponse response;
    response.stream = [&](HttpStream& out) {
      handler.expect(out.write("first"));
      handler.expect(go_on.wait());
      handler.expect(out.write(""));
      handler.expect(out.write("second"));
    };
    return response;
  });
  RawClient client = test.connect();
  client.send("GET / HTTP/1.1\r\n\r\n");
  CHECK(client.read_until("\r\n\r\n").find("\r\nTransfer-Encoding: chunked\r\n") !=
        std::string::npos);
  CHECK(client.read_until("first\r\n") == "5\r\nfirst\r\n");
  go_on.set();
  CHECK(client.read_until("0\r\n\r\n") == "6\r\nsecond\r\n0\r\n\r\n");
  // And the connection is good for another request.
  client.send("HEAD / HTTP/1.1\r\n\r\n");
  CHECK(client.read_until("\r\n\r\n").starts_with("HTTP/1.1 200 OK"));
  CHECK(handler.held());
}

TEST_CASE("an HTTP/1.0 client gets a stream without chunks") {
  const TestServer test([](const HttpRequest&) {
    HttpResponse response;
    response.stream = [](HttpStream& out) { out.write("plain"); };
    return response;
  });
  RawClient client = test.connect();
  client.send("GET / HTTP/1.0\r\n\r\n");
  CHECK(client.read_all().ends_with("\r\n\r\nplain"));
}

TEST_CASE("a stream learns that its client went away while there is nothing to write") {
  Signal noticed;
  Expectations handler;
  const TestServer test([&](const HttpRequest&) {
    HttpResponse response;
    response.stream = [&](HttpStream& out) {
      handler.expect(out.write("x"));
      handler.expect(wait_for_stop(out.stop()));
      handler.expect(!out.write("y"));
      noticed.set();
    };
    return response;
  });
  {
    RawClient client = test.connect();
    client.send("GET / HTTP/1.1\r\n\r\n");
    client.read_until("x\r\n");
  }
  CHECK(noticed.wait());
  CHECK(handler.held());
}

TEST_CASE("a handler at work learns that its client went away") {
  Signal started;
  Signal noticed;
  const TestServer test([&](const HttpRequest& request) {
    started.set();
    if (wait_for_stop(request.stop)) noticed.set();
    return HttpResponse{};
  });
  {
    RawClient client = test.connect();
    client.send("GET / HTTP/1.1\r\n\r\n");
    REQUIRE(started.wait());
  }
  CHECK(noticed.wait());
}

TEST_CASE("many streams do not keep short calls waiting") {
  constexpr int streams = 100;
  std::atomic<int> open = 0;
  const TestServer test([&](const HttpRequest& request) {
    if (request.path == "/short") return text_response(200, "ok");
    HttpResponse response;
    response.stream = [&](HttpStream& out) {
      ++open;
      out.write("x");
      (void)wait_for_stop(out.stop());
    };
    return response;
  });
  std::vector<RawClient> clients;
  clients.reserve(streams);
  for (int i = 0; i < streams; ++i) {
    clients.push_back(test.connect());
    clients.back().send("GET /stream HTTP/1.1\r\n\r\n");
    clients.back().read_until("x\r\n");
  }
  CHECK(open == streams);
  RawClient client = test.connect();
  client.send("GET /short HTTP/1.1\r\n\r\n");
  CHECK(client.read_answer() == "200|ok");
}

TEST_CASE("an upgrade is exactly the 101 of the wire and keeps early bytes") {
  HttpServerOptions options;
  options.headers.set("Server", "not in a 101");
  const TestServer test(
      [](const HttpRequest&) {
        HttpResponse response;
        response.upgrade = HttpResponse::Upgrade{
            "fuse-attach/1", [](ByteStream& stream) {
              std::array<char, 64> buffer{};
              while (true) {
                const auto got = stream.read(buffer, std::nullopt);
                if (!got || got->kind != ReadOutcome::Kind::bytes) return;
                (void)stream.write(cat("<", std::string_view(buffer.data(), got->size), ">"));
                if (buffer[got->size - 1] == 'Q') return;
              }
            }};
        return response;
      },
      options);
  RawClient client = test.connect();
  client.send("GET /attach HTTP/1.1\r\nUpgrade: fuse-attach/1\r\nConnection: Upgrade\r\n\r\nearly");
  CHECK(client.read_until("\r\n\r\n") ==
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: fuse-attach/1\r\n"
        "Connection: Upgrade\r\n\r\n");
  CHECK(client.read_until(">") == "<early>");
  client.send("later");
  CHECK(client.read_until(">") == "<later>");
  client.send("Q");
  CHECK(client.read_all() == "<Q>");
}

}  // namespace
}  // namespace fuse
