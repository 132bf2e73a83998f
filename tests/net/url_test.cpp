#include "net/url.h"

#include "net/headers.h"
#include "tests/catch.h"
#include "tests/net/random.h"

namespace fuse {
namespace {

std::string complaint(std::string_view text) {
  const auto url = parse_url(text);
  return url ? "none" : url.error().message;
}

TEST_CASE("percent encoding comes back as it was") {
  Random random(1);
  for (int i = 0; i < 200; ++i) {
    const std::string text = random.bytes(random.below(40));
    const std::string encoded = percent_encode(text);
    CHECK(percent_decode(encoded) == text);
    CHECK(encoded.find_first_of("/?&=+ #") == std::string::npos);
  }
}

TEST_CASE("a percent sign without two hex digits stays") {
  CHECK(percent_decode("100%") == "100%");
  CHECK(percent_decode("%4") == "%4");
  CHECK(percent_decode("%zz%41") == "%zzA");
}

TEST_CASE("a query is form-decoded and keeps repeated names in order") {
  const Query query("cmd=echo&cmd=a+b%2Bc&&tty=1&flag&x=a=b");

  CHECK(query.all("cmd") == std::vector<std::string>{"echo", "a b+c"});
  CHECK(query.get("tty") == "1");
  CHECK(query.get("flag") == "");
  CHECK(query.get("x") == "a=b");
  CHECK(query.get("none") == std::nullopt);
}

TEST_CASE("a query comes back from its encoding") {
  Random random(2);
  for (int i = 0; i < 100; ++i) {
    Query query;
    for (std::size_t n = random.below(5); n > 0; --n) {
      query.add(random.bytes(1 + random.below(5)), random.bytes(random.below(9)));
    }
    CHECK(Query(query.encode()).items() == query.items());
  }
}

TEST_CASE("an address is taken apart") {
  const auto url = parse_url("HTTPS://fuse.example.com:8443/a/b/");
  REQUIRE(url);
  CHECK(url->scheme == "https");
  CHECK(url->host == "fuse.example.com");
  CHECK(url->port == "8443");
  CHECK(url->path == "/a/b");

  const auto v6 = parse_url("http://[2001:db8::1]:80");
  REQUIRE(v6);
  CHECK(v6->host == "2001:db8::1");
  CHECK(v6->port == "80");
  CHECK(v6->path.empty());
}

TEST_CASE("what is no plain http address is refused with the reason") {
  CHECK(complaint("fuse.example.com") ==
        "\"fuse.example.com\" is not an address: it has to begin with http://");
  CHECK(complaint("ftp://x") == "\"ftp://x\" is not an address: only http and https are supported");
  CHECK(complaint("http://x?y") ==
        "\"http://x?y\" is not an address: it must not have a query or a fragment");
  CHECK(complaint("http://x#y").find("fragment") != std::string::npos);
  for (const char* bad :
       {"http://", "http://:80", "http://x:", "http://x:0", "http://x:65536", "http://x:-1",
        "http://x:8o", "http://[::1", "http://[::1]x", "http://a b", "http://a_!"}) {
    CHECK(complaint(bad).find("its host or port is malformed") != std::string::npos);
  }
  CHECK(complaint("http://x/a b").find("its path holds") != std::string::npos);
}

TEST_CASE("credentials in an address are refused without repeating them") {
  CHECK(complaint("http://user:geheim@x").find("geheim") == std::string::npos);
  CHECK(complaint("http://user:geheim@x") == "an address must not hold credentials");
}

TEST_CASE("header names are compared without regard to case") {
  HttpHeaders headers{{"Content-Type", "a"}, {"X", "1"}, {"x", "2"}};

  CHECK(headers.get("content-type") == "a");
  CHECK(headers.all("X") == std::vector<std::string>{"1", "2"});
  headers.set("X", "3");
  CHECK(headers.all("x") == std::vector<std::string>{"3"});
  headers.remove("CONTENT-TYPE");
  CHECK_FALSE(headers.has("Content-Type"));
}

TEST_CASE("a token is found in a list of a header") {
  const HttpHeaders headers{{"Connection", "keep-alive, Upgrade"}, {"Connection", "x"}};

  CHECK(headers.has_token("connection", "upgrade"));
  CHECK(headers.has_token("Connection", "x"));
  CHECK_FALSE(headers.has_token("Connection", "close"));
  CHECK_FALSE(headers.has_token("Connection", "keep"));
}

}  // namespace
}  // namespace fuse
