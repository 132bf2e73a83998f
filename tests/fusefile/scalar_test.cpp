#include "fusefile/scalar.h"

#include "tests/catch.h"

namespace fuse {
namespace {

std::string integer(std::string_view text) {
  const auto number = parse_yaml_integer(text);
  if (!number) return "none";
  return number->fits ? std::to_string(number->value) : "too large";
}

TEST_CASE("whole numbers have signs, bases and underscores") {
  CHECK(integer("12") == "12");
  CHECK(integer("-12") == "-12");
  CHECK(integer("+1_000") == "1000");
  CHECK(integer("0x1F") == "31");
  CHECK(integer("0b11") == "3");
  CHECK(integer("-0o17") == "-15");
  CHECK(integer("010") == "8");
  CHECK(integer("0") == "0");
  CHECK(integer("9223372036854775807") == "9223372036854775807");
  CHECK(integer("9223372036854775808") == "too large");
  CHECK(integer("99999999999999999999999") == "too large");
  for (const char* text :
       {"", "-", "+", "0x", "0b2", "0080", "1.0", "1e3", "a", "_1", "1 ", "--1", "0xG"}) {
    INFO(text);
    CHECK(integer(text) == "none");
  }
}

TEST_CASE("plain scalars are what YAML 1.2 takes them for") {
  const auto tag = [](std::string_view text) { return short_tag(kind_of_plain(text)); };
  for (const char* text : {"", "~", "null", "Null", "NULL"}) CHECK(tag(text) == "!!null");
  for (const char* text : {"true", "False", "TRUE"}) CHECK(tag(text) == "!!bool");
  for (const char* text : {"1", "-0x2", "0o7"}) CHECK(tag(text) == "!!int");
  for (const char* text : {"1.5", ".5", "5.", "1e3", "-.inf", ".NaN", "0080", "1_0.5"}) {
    INFO(text);
    CHECK(tag(text) == "!!float");
  }
  for (const char* text : {"2024-01-01", "2024-1-2", "2024-01-01T10:00:00Z"}) {
    CHECK(tag(text) == "!!timestamp");
  }
  CHECK(tag("<<") == "!!merge");
  for (const char* text : {"yes", "tRue", "1.2.3", "e3", ".", "-", "0x", "1e", "2024-01", "nul",
                           "1s", "2024-01-01 noon", "10:30"}) {
    INFO(text);
    CHECK(tag(text) == "!!str");
  }
}

TEST_CASE("flags have words of their own") {
  CHECK(parse_yaml_flag("true", true) == true);
  CHECK(parse_yaml_flag("FALSE", true) == false);
  CHECK_FALSE(parse_yaml_flag("true", false));
  for (const char* text : {"y", "Y", "yes", "Yes", "YES", "on", "On", "ON"}) {
    CHECK(parse_yaml_flag(text, false) == true);
  }
  for (const char* text : {"n", "N", "no", "No", "NO", "off", "Off", "OFF"}) {
    CHECK(parse_yaml_flag(text, false) == false);
  }
  CHECK_FALSE(parse_yaml_flag("1", true));
  CHECK_FALSE(parse_yaml_flag("yEs", true));
}

}  // namespace
}  // namespace fuse
