#include "fusefile/ignore.h"

#include "fusefile/glob.h"
#include "tests/catch.h"

namespace fuse {
namespace {

bool ignored(std::string_view rules, std::string_view path, bool is_folder = false) {
  IgnoreRules ignore;
  REQUIRE(ignore.add(rules));
  return ignore.ignores(path, is_folder);
}

TEST_CASE("a pattern without a slash matches the last name at any depth") {
  CHECK(ignored("*.log", "a.log"));
  CHECK(ignored("*.log", "x/y/a.log"));
  CHECK_FALSE(ignored("*.log", "a.log/b"));
  CHECK(ignored("x", "a/x", true));
  CHECK_FALSE(ignored("x/", "a/x"));
  CHECK(ignored("x/", "a/x", true));
}

TEST_CASE("a pattern with a slash at the start or inside is anchored") {
  CHECK(ignored("/a.log", "a.log"));
  CHECK_FALSE(ignored("/a.log", "x/a.log"));
  CHECK(ignored("doc/*.txt", "doc/a.txt"));
  CHECK_FALSE(ignored("doc/*.txt", "x/doc/a.txt"));
  CHECK_FALSE(ignored("doc/*.txt", "doc/x/a.txt"));
  CHECK_FALSE(ignored("doc/a/", "x/doc/a", true));
}

TEST_CASE("two stars stand for whole names") {
  CHECK(ignored("**/a", "a"));
  CHECK(ignored("**/a", "x/y/a"));
  CHECK(ignored("a/**", "a/x/y"));
  CHECK_FALSE(ignored("a/**", "a", true));
  CHECK(ignored("a/**/b", "a/b"));
  CHECK(ignored("a/**/b", "a/x/y/b"));
  CHECK_FALSE(ignored("a/**/b", "a/x"));
  CHECK(ignored("a/x**/b", "a/xyz/b"));
  CHECK_FALSE(ignored("a/x**/b", "a/x/y/b"));
}

TEST_CASE("the last pattern that matches decides") {
  CHECK_FALSE(ignored("*.txt\n!keep.txt", "keep.txt"));
  CHECK(ignored("!keep.txt\n*.txt", "keep.txt"));
  CHECK(ignored("*.txt\n!keep.txt", "other.txt"));
  CHECK_FALSE(ignored("!*.pem", "a.pem"));
}

TEST_CASE("comments, blank lines and trailing blanks say nothing") {
  CHECK(ignored("# a\r\n\r\n  \nb \t\r\n", "b"));
  CHECK_FALSE(ignored("# a\r\n", "# a"));
  CHECK(ignored(" a", " a"));
  CHECK_FALSE(ignored("/\n!\n!/", "a"));
}

TEST_CASE("many stars do not take long") {
  std::string pattern;
  for (int i = 0; i < 40; ++i) pattern += "**/";
  std::string path;
  for (int i = 0; i < 200; ++i) path += "a/";
  CHECK_FALSE(ignored(pattern + "b", path + "a"));
  CHECK_FALSE(glob_matches(std::string(200, '*') + "b", std::string(200, 'a')));
}

TEST_CASE("patterns for one name are those of the shell") {
  CHECK(glob_matches("", ""));
  CHECK(glob_matches("*", ""));
  CHECK(glob_matches("a*b*c", "aXbYbZc"));
  CHECK_FALSE(glob_matches("a*b", "ac"));
  CHECK(glob_matches("?", "\xC3\xA9"));
  CHECK_FALSE(glob_matches("??", "\xC3\xA9"));
  CHECK(glob_matches("[a-c]x", "bx"));
  CHECK_FALSE(glob_matches("[^a-c]x", "bx"));
  CHECK(glob_matches("[^a-c]x", "dx"));
  CHECK(glob_matches("[\xC3\xA0-\xC3\xB0]", "\xC3\xA9"));
  CHECK(glob_matches("[\\]]", "]"));
  CHECK(glob_matches("\\*", "*"));
  CHECK_FALSE(glob_matches("\\*", "a"));
  CHECK_FALSE(glob_matches("[a-c]", ""));
}

TEST_CASE("malformed patterns are told apart") {
  for (const char* bad : {"[", "[a", "[a-", "[a-]", "[-a]", "[]a]", "[^]", "\\", "a[b", "[\\"}) {
    INFO(bad);
    CHECK_FALSE(is_glob(bad));
  }
  for (const char* good : {"", "a", "[a]", "[^a]", "[a-z0-9]", "*?", "\\[", "]", "[\\-]"}) {
    INFO(good);
    CHECK(is_glob(good));
  }
}

}  // namespace
}  // namespace fuse
