#include "base/text.h"

#include <array>
#include <cerrno>
#include <cstdint>
#include <random>

#include "base/error.h"
#include "base/quote.h"
#include "base/result.h"
#include "tests/catch.h"

namespace fuse {
namespace {

using Words = std::vector<std::string>;

TEST_CASE("parts are put together") {
  CHECK(cat("a", 'b', 3, -4, std::string("c"), std::uint64_t{18446744073709551615U}) ==
        "ab3-4c18446744073709551615");
  CHECK(join(Words{"a", "b", ""}, ", ") == "a, b, ");
  CHECK(join(Words{}, ", ").empty());
}

TEST_CASE("a text is split at every separator") {
  CHECK(split("a,b,", ',') == Words{"a", "b", ""});
  CHECK(split("", ',') == Words{""});
  CHECK(split(",", ',') == Words{"", ""});
}

TEST_CASE("blanks around a text are cut off") {
  CHECK(trim(" \t\r\na b\n ") == "a b");
  CHECK(trim(" \n").empty());
  CHECK(trim("").empty());
}

TEST_CASE("case is ignored in ASCII only") {
  CHECK(lowercase("NVIDIA A100-SXM4") == "nvidia a100-sxm4");
  CHECK(contains_ignoring_case("NVIDIA A100-SXM4-40GB", "a100"));
  CHECK_FALSE(contains_ignoring_case("NVIDIA A10", "a100"));
  CHECK(contains_ignoring_case("x", ""));
  CHECK(equal_ignoring_case("aB", "Ab"));
  CHECK_FALSE(equal_ignoring_case("ab", "abc"));
  CHECK_FALSE(equal_ignoring_case("\xC3\x84", "\xC3\xA4"));
}

TEST_CASE("a whole number is one and nothing else") {
  CHECK(parse_int("0") == 0);
  CHECK(parse_int("-9223372036854775808") == INT64_MIN);
  for (const char* bad : {"", "-", "+1", " 1", "1 ", "1.0", "0x1", "9223372036854775808", "a"}) {
    CHECK_FALSE(parse_int(bad));
  }
}

TEST_CASE("a text is quoted for a shell") {
  CHECK(shell_quote("") == "''");
  CHECK(shell_quote("a b") == "'a b'");
  CHECK(shell_quote("it's $X") == "'it'\\''s $X'");
}

TEST_CASE("control characters are those of ASCII") {
  for (const char c : {'\0', '\t', '\n', '\r', '\x1B', '\x1F', '\x7F'}) CHECK(is_control(c));
  for (const char c : {' ', 'a', '~', '\x80', '\xC2', '\xFF'}) CHECK_FALSE(is_control(c));
}

TEST_CASE("what is not UTF-8 becomes the replacement character") {
  const std::string mark = "\xEF\xBF\xBD";
  CHECK(valid_utf8("plain \xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80") ==
        "plain \xC3\xA4\xE2\x82\xAC\xF0\x9F\x98\x80");
  CHECK(valid_utf8("a\xFFz") == "a" + mark + "z");
  CHECK(valid_utf8("\xC3") == mark);
  CHECK(valid_utf8("\xC0\xAF") == mark + mark);                        // too long a form
  CHECK(valid_utf8("\xED\xA0\x80") == mark + mark + mark);             // half a surrogate pair
  CHECK(valid_utf8("\xF4\x90\x80\x80") == mark + mark + mark + mark);  // beyond Unicode
}

TEST_CASE("base64 is that of RFC 4648") {
  const std::array<std::pair<const char*, const char*>, 7> examples = {{{"", ""},
                                                                        {"f", "Zg=="},
                                                                        {"fo", "Zm8="},
                                                                        {"foo", "Zm9v"},
                                                                        {"foob", "Zm9vYg=="},
                                                                        {"fooba", "Zm9vYmE="},
                                                                        {"foobar", "Zm9vYmFy"}}};
  for (const auto& [plain, encoded] : examples) {
    CHECK(base64_encode(plain) == encoded);
    CHECK(base64_decode(encoded) == plain);
  }
  for (const char* bad : {"Zg", "Zg=", "Zg===", "====", "Z===", "Zm9v\n", "Zm 9",
                          "Zg==Zg==", "Zm9-", "=Zg=", "Z=g="}) {
    CAPTURE(bad);
    CHECK_FALSE(base64_decode(bad));
  }
}

TEST_CASE("any bytes come back from base64") {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    std::string bytes(random() % 70, '\0');
    for (char& c : bytes) c = static_cast<char>(random() % 256);
    CHECK(base64_decode(base64_encode(bytes)) == bytes);
  }
}

TEST_CASE("bytes are written in hex") {
  CHECK(hex_encode(std::string("\0\x1F\xFFz", 4)) == "001fff7a");
}

TEST_CASE("a text is quoted as error texts quote it") {
  CHECK(in_quotes("a\"b\\\n\x01") == "\"a\\\"b\\\\\\n\\x01\"");
  CHECK(in_quotes("\xC3\xA4\xFF\xE2\x80\xA8") == "\"\xC3\xA4\\xff\\u2028\"");
}

TEST_CASE("an errno is an error of the right kind, in words") {
  CHECK(errno_error("open /x", ENOENT).code == ErrorCode::not_found);
  CHECK(errno_error("open /x", ENOENT).message == "open /x: No such file or directory");
  CHECK(errno_error("x", EEXIST).code == ErrorCode::conflict);
  CHECK(errno_error("x", EBUSY).code == ErrorCode::conflict);
  CHECK(errno_error("x", ECONNREFUSED).code == ErrorCode::unreachable);
  CHECK(errno_error("x", EIO).code == ErrorCode::internal);
  CHECK(in_context("start vm-7", {ErrorCode::conflict, "busy", {{"a", "b"}}}).message ==
        "start vm-7: busy");
  CHECK(in_context("x", {ErrorCode::conflict, "busy", {{"a", "b"}}}).details.at("a") == "b");
}

TEST_CASE("a result is a value or an error") {
  const Result<std::string> value = std::string("v");
  const Result<std::string> error = Error{ErrorCode::conflict, "e"};
  CHECK(value.has_value());
  CHECK(*value == "v");
  CHECK(value->size() == 1);
  CHECK_FALSE(error);
  CHECK(error.error().message == "e");
  CHECK(Result<void>());
  CHECK_FALSE(Result<void>(Error{}));
  // A temporary hands its value out by value, so this loop's range lives.
  const auto list = [] { return Result<Words>(Words{"a", "b"}); };
  std::string seen;
  for (const std::string& word : *list()) seen += word;
  CHECK(seen == "ab");
}

}  // namespace
}  // namespace fuse
