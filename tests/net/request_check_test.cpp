#include "net/request_check.h"

#include <string>

#include "tests/catch.h"

namespace fuse {
namespace {

using namespace std::string_literals;

std::string refusal(const HttpHeaders& headers, bool http_1_0 = false) {
  const auto framing = check_request_fields(headers, http_1_0);
  return framing ? "" : framing.error().message;
}

TEST_CASE("the framing of a body is taken from its fields") {
  const auto framing = [](const HttpHeaders& headers) {
    return check_request_fields(headers, false).value();
  };
  CHECK_FALSE(framing({}).has_body());
  CHECK_FALSE(framing({{"Content-Length", "0"}}).has_body());
  CHECK(framing({{"Transfer-Encoding", "Chunked"}}).chunked);
  CHECK(framing({{"Transfer-Encoding", "chunked"}}).has_body());
  CHECK(framing({{"Content-Length", "12"}, {"content-length", "12"}}).length == 12);
}

TEST_CASE("a length that is not one number is refused") {
  for (const char* bad : {"", "-1", "+1", "1 ", " 1", "0x1", "1,1", "18446744073709551616"}) {
    CAPTURE(bad);
    CHECK(refusal({{"Content-Length", bad}}) == "invalid Content-Length");
  }
  CHECK(refusal({{"Content-Length", "1"}, {"Content-Length", "2"}}) == "invalid Content-Length");
  // As numbers they are the same, but not to everyone.
  CHECK(refusal({{"Content-Length", "1"}, {"Content-Length", "01"}}) == "invalid Content-Length");
}

TEST_CASE("a body that two readers may end at different places is refused") {
  CHECK_FALSE(refusal({{"Content-Length", "1"}, {"Transfer-Encoding", "chunked"}}).empty());
  CHECK_FALSE(refusal({{"Transfer-Encoding", "gzip, chunked"}}).empty());
  CHECK_FALSE(refusal({{"Transfer-Encoding", "chunked"}, {"Transfer-Encoding", "x"}}).empty());
  CHECK_FALSE(refusal({{"Transfer-Encoding", "chunked"}}, true).empty());
  const auto encoded = check_request_fields({{"Transfer-Encoding", "gzip"}}, false);
  REQUIRE_FALSE(encoded);
  CHECK(encoded.error().code == ErrorCode::unimplemented);
}

TEST_CASE("names that are no tokens and a second host are refused") {
  for (const std::string& bad : {"A B"s, "A "s, " A"s, ""s, "A\xC3\x84"s, "A\0"s, "A\n"s, "(A)"s}) {
    CAPTURE(bad);
    CHECK_FALSE(refusal({{bad, "v"}}).empty());
  }
  CHECK_FALSE(refusal({{"Host", "a"}, {"host", "a"}}).empty());
  CHECK(refusal({{"Host", "a"}, {"X-a_b.1!", "v"}}).empty());
}

TEST_CASE("a target may be a whole address, of which the path counts") {
  const auto target = [](const std::string& text) { return origin_form(text).value_or("refused"); };
  CHECK(target("/p?q") == "/p?q");
  CHECK(target("http://h:1/p?q") == "/p?q");
  CHECK(target("HTTPS://h") == "/");
  CHECK(target("http://h?q=1") == "/?q=1");
  CHECK(target("*") == "*");
  for (const std::string& bad :
       {""s, "p"s, "ftp://h/p"s, "/a b"s, "/\x01"s, "/a\nb"s, "/a\rb"s, "/\0"s, "/\x7F"s}) {
    CAPTURE(bad);
    CHECK(target(bad) == "refused");
  }
}

}  // namespace
}  // namespace fuse
