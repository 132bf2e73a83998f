#include "fusefile/hints.h"

#include "tests/fusefile/compiling.h"

namespace fuse {
namespace {

std::string first_hint(std::string_view text) {
  const ParsedFusefile parsed = parse_fusefile(text);
  REQUIRE_FALSE(parsed.diagnostics.all().empty());
  return parsed.diagnostics.all()[0].hint;
}

TEST_CASE("a key of another place is sent there, one of none is told what there is") {
  CHECK(hint_for_stranger("gpu_profile", "") == "move it: gpu_profile is a key of resources");
  CHECK(hint_for_stranger("depends_on", "build[]") == "move it: depends_on is a key of a service");
  // At home in two places, and so in none.
  CHECK(hint_for_stranger("port", "cache") == "keys here: enabled");
  CHECK(hint_for_stranger("colour", "copy[]") == "keys here: from, to");
}

TEST_CASE("sizes and durations without a unit are given one") {
  CHECK(hint_for_size("64") == "write 64GB or 64MB");
  CHECK(hint_for_size("1.5") == "write 1.5GB or 1.5MB");
  CHECK(hint_for_size("4K").starts_with("write a number and M, G or T"));
  CHECK(hint_for_duration("90") == "write 90s, 90m or 90h");
  CHECK(hint_for_duration("2d") == "write 48h");
  CHECK(hint_for_duration("99999999999999999999d") ==
        "write numbers with units, as in 90s or 1h30m");
  CHECK(hint_for_duration("") == "write numbers with units, as in 90s or 1h30m");
}

TEST_CASE("flags are guessed from what is near") {
  CHECK(hint_for_flag("ture") == "write true");
  CHECK(hint_for_flag("flase") == "write false");
  CHECK(hint_for_flag("maybe") == "write true or false");
}

TEST_CASE("text that is no YAML is told how to become some") {
  CHECK(first_hint("run: [a, b\n") == "close the list with ]; it begins at 1:6");
  CHECK(first_hint("a: 1\nb: {c: [1], d: 2\n") == "close the mapping with }; it begins at 2:4");
  CHECK(first_hint("version: 1\nrun: 'a\n\nb: c\n") == "close the quote that begins after 2:1");
  CHECK(first_hint("run: \"a") == "close the quote that begins after 1:1");
  CHECK(first_hint("run: echo a: b\n") ==
        "quote the value: a colon and a blank in it begin another one");
  CHECK(first_hint("run: @a\n") == "quote the value: a plain one cannot begin with this character");
  CHECK(first_hint("run: \"\\q\"\n") == "double the backslash, or use single quotes");
  CHECK(first_hint("run: a]]\nb: *c\n") ==
        "name the value first with &NAME, or quote it if no alias is meant");
  CHECK(first_hint("a:\n\tb: 1\n") == "indent with blanks: YAML takes no tabs there");
  CHECK(first_hint("run: \xFF\n") == "save the file as plain UTF-8 text");
  CHECK(first_hint("run: \x1B\n") == R"(write it in double quotes as an escape, as in "\x1b")");
}

}  // namespace
}  // namespace fuse
