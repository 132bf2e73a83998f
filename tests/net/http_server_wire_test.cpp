#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"
#include "net/http_exchange.h"
#include "tests/catch.h"
#include "tests/net/memory_transport.h"

namespace fuse {
namespace {

using namespace std::string_literals;

// What one connection came to.
struct Talk {
  std::vector<HttpRequest> requests{};  // that reached the handler
  std::string answers{};
  HttpExchange::After after = HttpExchange::After::keep;

  [[nodiscard]] std::string status() const { return answers.substr(0, 12); }
};

HttpResponse target_of(const HttpRequest& request) {
  return text_response(200, request.target);
}

// Plays the server to a client that sends these bytes and no more.
Talk talk(const std::string& bytes, HttpServerOptions options = {},
          const HttpHandler& handler = target_of) {
  Talk talk;
  NullLog log;
  options.error_answer = text_error_response;
  const HttpSite site{.options = std::move(options),
                      .handler =
                          [&](const HttpRequest& request) {
                            talk.requests.push_back(request);
                            return handler(request);
                          },
                      .log = log};
  SocketStream stream(std::make_unique<MemoryTransport>(
      std::vector<std::string_view>{std::string_view(bytes)}, talk.answers));
  const HttpPeer peer;
  const auto exchange = HttpExchange::on(stream, peer, site);
  while (talk.after == HttpExchange::After::keep) {
    talk.after = exchange->serve({}, [] { return false; });
  }
  return talk;
}

std::string get(const std::string& fields) {
  return cat("GET / HTTP/1.1\r\n", fields, "\r\n\r\n");
}

TEST_CASE("a malformed head is refused and ends the connection") {
  for (const std::string& bad :
       {"GET"s,
        "GET /"s,
        "GET / HTTP/2.0x"s,
        "GET / x"s,
        " / HTTP/1.1"s,
        "G T / HTTP/1.1"s,
        "GET / /x HTTP/1.1"s,
        "GET /\x01 HTTP/1.1"s,
        "GET /\n HTTP/1.1"s,
        "GET /\0 HTTP/1.1"s,
        "G\xC3\x84T / HTTP/1.1"s,
        "GET p HTTP/1.1"s,
        "GET / HTTP/1.1\r\nno colon"s,
        "GET / HTTP/1.1\r\n: v"s,
        "GET / HTTP/1.1\r\nA B: v"s,
        "GET / HTTP/1.1\r\nA : v"s,
        "GET / HTTP/1.1\r\nA: b\r\n folded: c"s,
        "GET / HTTP/1.1\r\nA: b\r\n folded"s,
        "GET / HTTP/1.1\r\nA: b\nC: d"s,
        "GET / HTTP/1.1\nA: b"s,
        "GET / HTTP/1.1\r\nA: b\rc"s,
        "GET / HTTP/1.1\r\nA: \0"s,
        "GET / HTTP/1.1\r\nA\0: b"s,
        "GET / HTTP/1.1\r\nA: \x7F"s,
        "GET / HTTP/1.1\r\nHost: a\r\nHost: b"s,
        "POST / HTTP/1.1\r\nContent-Length: +1"s,
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2"s,
        "POST / HTTP/1.1\r\nContent-Length : 1"s,
        "POST / HTTP/1.1\r\nContent-Length: 1 1"s,
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nTransfer-Encoding: chunked"s,
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked"s,
        "POST / HTTP/1.1\r\nTransfer-Encoding: \x0B"s}) {
    CAPTURE(bad);
    // What follows must not be taken for a request.
    const Talk seen = talk(bad + "\r\n\r\nGET /smuggled HTTP/1.1\r\n\r\n");
    CHECK(seen.requests.empty());
    CHECK(seen.after == HttpExchange::After::close);
    CHECK((seen.status() == "HTTP/1.1 400" || seen.status() == "HTTP/1.1 501" ||
           seen.status() == "HTTP/1.1 505"));
    const std::string_view close = "\r\nConnection: close\r\n";
    CHECK(seen.answers.find(close) != std::string::npos);
    CHECK(seen.answers.find(close) == seen.answers.rfind(close));
  }
}

TEST_CASE("a malformed chunked body is refused and ends the connection") {
  for (const std::string& bad :
       {"x\r\n"s, "\r\n"s, "-1\r\n"s, "5\nhello\r\n"s, "11111111111111111\r\n"s,
        "5\r\nhelloX\r\n0\r\n\r\n"s, "5\r\nhello\n0\r\n\r\n"s, "fffffffffffffffe\r\nhello\r\n"s}) {
    CAPTURE(bad);
    const Talk seen = talk("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n" + bad +
                           "GET /smuggled HTTP/1.1\r\n\r\n");
    CHECK(seen.requests.empty());
    CHECK(seen.after == HttpExchange::After::close);
    CHECK((seen.status() == "HTTP/1.1 400" || seen.status() == "HTTP/1.1 413"));
  }
}

TEST_CASE("the values of fields are bytes") {
  const Talk seen =
      talk(get("Authorization: Bearer a%41%0d%0a%\r\nEmpty:\r\nPadded: \t v \r\nReferer: /%41\r\n"
               "REMOTE_ADDR: 9.9.9.9"));
  REQUIRE(seen.requests.size() == 1);
  const HttpHeaders& headers = seen.requests[0].headers;
  CHECK(headers.get("Authorization") == "Bearer a%41%0d%0a%");
  CHECK(headers.get("empty") == "");
  CHECK(headers.get("padded") == "v");
  CHECK(headers.get("Referer") == "/%41");
  // No field of httplib's own, and none that looks like one.
  CHECK(headers.fields().size() == 4);
}

TEST_CASE("several fields of a name keep their order") {
  const Talk seen = talk(get("B: 1\r\nA: x\r\nb: 2\r\nB: 3"));
  REQUIRE(seen.requests.size() == 1);
  CHECK(seen.requests[0].headers.all("b") == std::vector<std::string>{"1", "2", "3"});
}

TEST_CASE("a body is not interpreted") {
  const std::string form(20000, 'a');
  for (const std::string& fields :
       {"Content-Type: application/x-www-form-urlencoded"s,
        "Content-Type: multipart/form-data; boundary=x"s, "Content-Type: multipart/form-data"s,
        "Content-Encoding: gzip"s, "Range: bytes=1-2"s, "Range: bytes=90000-"s}) {
    CAPTURE(fields);
    const Talk seen = talk(
        cat("POST / HTTP/1.1\r\n", fields, "\r\nContent-Length: ", form.size(), "\r\n\r\n", form));
    REQUIRE(seen.requests.size() == 1);
    CHECK(seen.requests[0].body == form);
    CHECK(seen.status() == "HTTP/1.1 200");
  }
}

TEST_CASE("any method may have a body of either kind, within the limit") {
  HttpServerOptions options;
  options.most_body = 5;
  for (const char* method : {"GET", "OPTIONS", "POST", "PUT", "PATCH", "DELETE"}) {
    CAPTURE(method);
    const std::string sized = cat(method, " / HTTP/1.1\r\nContent-Length: ");
    const std::string chunked = cat(method, " / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n");
    const Talk fits = talk(sized + "5\r\n\r\nhello" + chunked + "2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n" +
                               cat(method, " /end HTTP/1.1\r\n\r\n"),
                           options);
    REQUIRE(fits.requests.size() == 3);
    CHECK(fits.requests[0].body == "hello");
    CHECK(fits.requests[1].body == "hello");
    CHECK(fits.requests[2].target == "/end");
    CHECK(fits.requests[2].body.empty());

    for (const std::string& large :
         {sized + "6\r\n\r\nhello!", chunked + "6\r\nhello!\r\n0\r\n\r\n",
          chunked + "3\r\nhel\r\n3\r\nlo!\r\n0\r\n\r\n"}) {
      const Talk refused = talk(large, options);
      CHECK(refused.requests.empty());
      CHECK(refused.status() == "HTTP/1.1 413");
      CHECK(refused.after == HttpExchange::After::close);
    }
  }
}

TEST_CASE("a body that is too large is refused instead of asked for") {
  HttpServerOptions options;
  options.most_body = 5;
  const Talk seen =
      talk("POST / HTTP/1.1\r\nContent-Length: 6\r\nExpect: 100-continue\r\n\r\n", options);
  CHECK(seen.status() == "HTTP/1.1 413");
  CHECK(seen.answers.find("\r\nContent-Length: ") != std::string::npos);
}

TEST_CASE("an expectation is understood in any case, and only with a body") {
  const Talk body = talk("POST / HTTP/1.1\r\nContent-Length: 1\r\nExpect: 100-Continue\r\n\r\nx");
  CHECK(body.answers.starts_with("HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n"));
  CHECK(talk("POST / HTTP/1.1\r\nExpect: 100-continue\r\n\r\n").status() == "HTTP/1.1 200");
  const Talk old = talk("POST / HTTP/1.0\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\nx");
  CHECK(old.status() == "HTTP/1.1 200");
}

TEST_CASE("a head may be as long as the limit, in one line or in many") {
  const std::string target = "/" + std::string(60000, 't');
  CHECK(talk(cat("GET ", target, " HTTP/1.1\r\n\r\n")).requests.at(0).target == target);
  const std::string value(60000, '%');
  CHECK(talk(get("A: " + value)).requests.at(0).headers.get("A") == value);
  CHECK(talk(get("A: " + std::string(70000, 'v'))).status() == "HTTP/1.1 431");
  std::string many;
  for (int i = 0; i < 5000; ++i) many += "A: b\r\n";
  CHECK(talk(get(many + "A: b")).status() == "HTTP/1.1 400");
}

TEST_CASE("a stream is sent in chunks, and one cut short has no end") {
  const auto streaming = [](std::string_view path) {
    return talk(cat("GET ", path, " HTTP/1.1\r\n\r\n"), {}, [](const HttpRequest& request) {
      HttpResponse response;
      response.stream = [cut = request.path == "/cut"](HttpStream& out) {
        (void)out.write(std::string(300, 'x'));
        (void)out.write("");
        if (cut) throw std::runtime_error("cut");
        (void)out.write("y");
      };
      return response;
    });
  };
  const Talk whole = streaming("/whole");
  CHECK(whole.answers.ends_with(
      cat("\r\n\r\n12c\r\n", std::string(300, 'x'), "\r\n1\r\ny\r\n0\r\n\r\n")));
  const Talk cut = streaming("/cut");
  CHECK(cut.answers.ends_with(cat("\r\n12c\r\n", std::string(300, 'x'), "\r\n")));
  CHECK(cut.after == HttpExchange::After::close);
}

TEST_CASE("a whole address is a target, of which the path counts") {
  const Talk seen = talk("GET http://h/p?q=1 HTTP/1.1\r\n\r\nGET /a%20b#f HTTP/1.1\r\n\r\n");
  REQUIRE(seen.requests.size() == 2);
  CHECK(seen.requests[0].target == "/p?q=1");
  CHECK(seen.requests[0].query.get("q") == "1");
  CHECK(seen.requests[1].target == "/a%20b");
  CHECK(seen.requests[1].path == "/a b");
}

TEST_CASE("the value of a field cannot add one to the answer") {
  const Talk seen = talk(get("A: b"), {}, [](const HttpRequest&) {
    HttpResponse response = text_response(200, "body");
    response.headers.add("X-Said", "a\r\nEvil: 1");
    return response;
  });
  CHECK(seen.answers.find("\nEvil") == std::string::npos);
  CHECK(seen.answers.ends_with("\r\n\r\nbody"));
}

TEST_CASE("a handler's fields replace those of the server, and cannot frame the body") {
  HttpServerOptions options;
  options.headers.set("Server", "general");
  const Talk seen = talk(get("A: b"), options, [](const HttpRequest&) {
    HttpResponse response = text_response(200, "body");
    response.headers = {{"server", "special"},
                        {"Set-Cookie", "a"},
                        {"Set-Cookie", "b"},
                        {"Content-Length", "1"},
                        {"Transfer-Encoding", "gzip"}};
    return response;
  });
  CHECK(seen.answers.find("general") == std::string::npos);
  CHECK(seen.answers.find("special") != std::string::npos);
  CHECK(seen.answers.find("Set-Cookie: a\r\nSet-Cookie: b\r\n") != std::string::npos);
  CHECK(seen.answers.find("Content-Length: 4\r\n") != std::string::npos);
  CHECK(seen.answers.find("Content-Length: 1\r\n") == std::string::npos);
  CHECK(seen.answers.find("Transfer-Encoding") == std::string::npos);
}

}  // namespace
}  // namespace fuse
