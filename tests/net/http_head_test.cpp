#include "net/http_head.h"

#include "tests/catch.h"
#include "tests/net/random.h"

namespace fuse {
namespace {

using namespace std::string_literals;
using Kind = BodyFraming::Kind;

std::string refusal(const std::string& head) {
  const auto parsed = parse_request_head(head + "\r\n\r\n");
  return parsed ? "" : parsed.error().message;
}

TEST_CASE("the end of a head is found wherever it was cut") {
  const std::string head = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";
  for (std::size_t cut = 0; cut < head.size(); ++cut) {
    CHECK_FALSE(head_end(head.substr(0, cut)));
    CHECK(head_end(head + "body", cut) == std::optional(head.size()));
  }
}

TEST_CASE("a request head is taken apart") {
  const auto head = parse_request_head(
      "POST /a%20b?x=1 HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer a%41\r\nEmpty:\r\n"
      "Padded: \t v \r\n\r\n");
  REQUIRE(head);
  CHECK(head->method == "POST");
  CHECK(head->target == "/a%20b?x=1");
  CHECK_FALSE(head->http_1_0);
  // Values are bytes: nothing is decoded in them.
  CHECK(head->headers.get("Authorization") == "Bearer a%41");
  CHECK(head->headers.get("empty") == "");
  CHECK(head->headers.get("padded") == "v");
}

TEST_CASE("a target may be a whole address, of which the path counts") {
  const auto target = [](const std::string& text) {
    const auto head = parse_request_head("GET " + text + " HTTP/1.0\r\n\r\n");
    return head ? head->target : "refused";
  };
  CHECK(target("http://h:1/p?q") == "/p?q");
  CHECK(target("HTTPS://h") == "/");
  CHECK(target("http://h?q=1") == "/?q=1");
  CHECK(target("/p#f") == "/p");
  CHECK(target("*") == "*");
  CHECK(target("p") == "refused");
  CHECK(target("ftp://h/p") == "refused");
}

TEST_CASE("malformed heads are refused") {
  for (const std::string& bad :
       {"GET"s, "GET /"s, "GET / HTTP/2.0x"s, "GET / x"s, " / HTTP/1.1"s, "G T / HTTP/1.1"s,
        "GET / /x HTTP/1.1"s, "GET /\x01 HTTP/1.1"s, "G\xC3\x84T / HTTP/1.1"s,
        "GET / HTTP/1.1\r\nno colon"s, "GET / HTTP/1.1\r\n: v"s, "GET / HTTP/1.1\r\nA B: v"s,
        "GET / HTTP/1.1\r\nA : v"s, "GET / HTTP/1.1\r\nA: b\r\n folded"s,
        "GET / HTTP/1.1\r\nA: b\nC: d"s, "GET / HTTP/1.1\r\nA: b\rc"s, "GET / HTTP/1.1\r\nA: \0"s,
        "GET / HTTP/1.1\r\nA: \x7F"s, "GET / HTTP/1.1\r\nHost: a\r\nHost: b"s}) {
    CAPTURE(bad);
    CHECK_FALSE(refusal(bad).empty());
  }
  CHECK(refusal("GET / HTTP/1.1\r\nHost: a").empty());
}

TEST_CASE("another version of HTTP is said to be one") {
  const auto head = parse_request_head("PRI * HTTP/2.0\r\n\r\n");
  REQUIRE_FALSE(head);
  CHECK(head.error().code == ErrorCode::unimplemented);
}

TEST_CASE("a response head is taken apart") {
  const auto head = parse_response_head("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n");
  REQUIRE(head);
  CHECK(head->status == 101);
  CHECK(head->headers.get("upgrade") == "x");
  CHECK(parse_response_head("HTTP/1.0 200\r\n\r\n")->status == 200);
  for (const char* bad : {"HTTP/1.1 2\r\n\r\n", "HTTP/1.1 2000 x\r\n\r\n", "HTTP/1.1  99 \r\n\r\n",
                          "SSH-2.0-x\r\n\r\n", "HTTP/1.1 -10 x\r\n\r\n", "HTTP/2 200\r\n\r\n",
                          "HTTP/1.1 200 x\r\nbad\r\n\r\n"}) {
    CAPTURE(bad);
    CHECK_FALSE(parse_response_head(bad));
  }
}

TEST_CASE("the framing of a body is unambiguous or refused") {
  const auto kind = [](const HttpHeaders& headers) { return framing_of(headers)->kind; };
  CHECK(kind({}) == Kind::none);
  CHECK(kind({{"Content-Length", "0"}}) == Kind::none);
  CHECK(kind({{"Transfer-Encoding", "Chunked"}}) == Kind::chunked);
  CHECK(framing_of({{"Content-Length", "12"}, {"content-length", "12"}})->length == 12);

  for (const char* bad : {"", "-1", "+1", "1 ", "0x1", "1,1", "18446744073709551616"}) {
    const auto framing = framing_of({{"Content-Length", bad}});
    CAPTURE(bad);
    REQUIRE_FALSE(framing);
    CHECK(framing.error().message == "invalid Content-Length");
  }
  CHECK_FALSE(framing_of({{"Content-Length", "1"}, {"Content-Length", "2"}}));
  CHECK_FALSE(framing_of({{"Content-Length", "1"}, {"Transfer-Encoding", "chunked"}}));
  CHECK_FALSE(framing_of({{"Transfer-Encoding", "gzip, chunked"}}));
  CHECK_FALSE(framing_of({{"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "chunked"}}));
}

TEST_CASE("a value cannot add a field of its own") {
  CHECK(encode_head("HTTP/1.1 200 OK", {{"A", "b\r\nEvil: 1"}, {"C", ""}}) ==
        "HTTP/1.1 200 OK\r\nA: b  Evil: 1\r\nC: \r\n\r\n");
}

TEST_CASE("any fields come back from their head") {
  Random random(5);
  for (int round = 0; round < 100; ++round) {
    HttpHeaders headers;
    for (std::size_t n = random.below(6); n > 0; --n) {
      headers.add("X" + random.of("abcXYZ019-_", random.below(9)),
                  random.of("abc:;,=\"%\\/()<>", random.below(30)));
    }
    const auto head = parse_request_head(encode_head("GET / HTTP/1.1", headers));
    REQUIRE(head);
    CHECK(head->headers.fields() == headers.fields());
  }
}

}  // namespace
}  // namespace fuse
