#include "fusefile/yaml_tree.h"

#include <array>

#include "base/text.h"
#include "tests/catch.h"

namespace fuse {
namespace {

std::string problem(std::string_view text, const YamlLimits& limits = {}) {
  Diagnostics diagnostics;
  const auto document = parse_yaml(text, limits, diagnostics);
  std::string out = document ? "document" : "nothing";
  for (const Diagnostic& d : diagnostics.all()) {
    out += cat(", ", d.where.line, ":", d.where.column, " ", to_string(d.code), " ", d.message);
  }
  return out;
}

std::string repeated(std::string_view text, int times) {
  std::string out;
  while (times-- > 0) out += text;
  return out;
}

TEST_CASE("nodes know their place, their tag and whether they were quoted") {
  Diagnostics diagnostics;
  const auto document =
      parse_yaml("m: &m z\na: 'x'\nb:\n  - !!int 1\n  - [y, *m]\n", {}, diagnostics);
  REQUIRE(document);
  const auto& entries = document->root->entries;
  REQUIRE(entries.size() == 3);
  CHECK(entries[1].key->where == Location{2, 1});
  CHECK(entries[1].value->where == Location{2, 4});
  CHECK(entries[1].value->quoted);
  const YamlNode& list = *entries[2].value;
  REQUIRE(list.items.size() == 2);
  CHECK(list.items[0]->tag == "tag:yaml.org,2002:int");
  CHECK_FALSE(list.items[0]->quoted);
  const YamlNode& alias = *list.items[1]->items[1];
  CHECK(alias.text == "z");
  CHECK(alias.where == Location{5, 9});
}

TEST_CASE("input, nodes, depth and text are bounded") {
  const YamlLimits limits{.bytes = 100, .nodes = 5, .text = 20, .depth = 3};
  CHECK(problem(std::string(100, ' '), limits) == "document");
  CHECK(problem(std::string(101, ' '), limits) ==
        "nothing, 1:101 F003 parse fusefile: yaml: line 1: input is 101 bytes, over the 100 byte "
        "limit");
  CHECK(problem("[1,2,3,4]", limits) == "document");
  CHECK(problem("[1,2,3,4,5]", limits) ==
        "nothing, 1:10 F003 parse fusefile: yaml: line 1: document has more than 5 nodes");
  CHECK(problem("[[1]]", limits) == "document");
  CHECK(problem("[[[1]]]", limits) ==
        "nothing, 1:4 F003 parse fusefile: yaml: line 1: exceeded max depth of 3");
  CHECK(problem("[&a [1], *a]", limits) == "document");
  CHECK(problem("[&a [1], [*a]]", {.depth = 3}) ==
        "nothing, 1:11 F003 parse fusefile: yaml: line 1: exceeded max depth of 3");
  CHECK(problem("[&a 12345678901, *a]", limits) ==
        "nothing, 1:18 F003 parse fusefile: yaml: line 1: document contains excessive aliasing");
}

TEST_CASE("an alias counts as everything it stands for") {
  std::string text = "- &a0 [x, x]\n";
  for (int i = 1; i < 60; ++i) text += cat("- &a", i, " [*a", i - 1, ", *a", i - 1, "]\n");
  CHECK(problem(text).ends_with("document contains excessive aliasing"));
  // 30 KiB of input that would be gigabytes of text.
  CHECK(problem("- &a " + std::string(10000, 'x') + "\n" + repeated("- *a\n", 5000))
            .ends_with("document contains excessive aliasing"));
}

TEST_CASE("nesting ends in an error, however it is written") {
  for (const char* open : {"[", "{a: ", "- ", "? ", "a: {b: [", "!t [", "&a [", "[{"}) {
    INFO(open);
    CHECK(problem(repeated(open, 3000)).starts_with("nothing, "));
  }
}

TEST_CASE("text that is no YAML has one problem") {
  for (const char* text :
       {"a: [1", "a: 'x", "{a: 1}}", "a: b: c", "\ta: 1", "%", "@", "*x", "&", "a\nb: 1\n- c",
        "[,]]", "{,", "!<", "|x", ",,", "]", "}", "a: |\n b\n- c"}) {
    INFO(text);
    Diagnostics diagnostics;
    if (parse_yaml(text, {}, diagnostics)) continue;  // this parser is lenient
    REQUIRE(diagnostics.all().size() == 1);
    CHECK(diagnostics.all()[0].message.starts_with("parse fusefile: yaml:"));
  }
}

TEST_CASE("escapes in double quotes are the characters that they stand for") {
  Diagnostics diagnostics;
  const auto document =
      parse_yaml(R"("\N\_\L\P\x85\xa0\u00e9\U0001F680é\N\0\e\t\"\/\\")", {}, diagnostics);
  REQUIRE(document);
  CHECK(
      document->root->text ==
      std::string(
          "\xC2\x85\xC2\xA0\xE2\x80\xA8\xE2\x80\xA9\xC2\x85\xC2\xA0é🚀é\xC2\x85\0\x1B\t\"/\\", 30));
}

std::string text_of(std::string_view yaml) {
  Diagnostics diagnostics;
  const auto document = parse_yaml(yaml, {}, diagnostics);
  REQUIRE(document);
  return document->root->entries.at(0).value->text;
}

TEST_CASE("line breaks at the end of a scalar are those that YAML keeps") {
  struct Case {
    std::string_view yaml;
    std::string_view text;
  };
  for (const auto& [yaml, text] : std::to_array<Case>({
           // In quotes the first break is folded, and each blank line is one.
           {"a: 'x\n  '", "x "},
           {"a: 'x\n\n  '", "x\n"},
           {"a: 'x\n\n\n  '\nb: 1\n", "x\n\n"},
           {"a: '\n\n\n'", "\n\n"},
           {"a: 'it''s\n\n'", "it's\n"},
           {"a: 'x''\n\n'", "x'\n"},
           {"a: \"x\n\n\"", "x\n"},
           {"a: \"x\\n\n\n\"", "x\n\n"},
           {"a: \"x\\\"\n\n\"", "x\"\n"},
           {"a: \"x\\\n\n\n\"", "x\n\n"},
           {"a: \"x\\ \n\n\n\"", "x \n\n"},
           {"a: !!str &q # why\n  'x\n\n'", "x\n"},
           {"a: ['x']\nb: 'y'", ""},
           // Blocks: - none, nothing one, + all.
           {"a: |-\n  x\n\n\n", "x"},
           {"a: |\n  x\n\n\n", "x\n"},
           {"a: |+\n  x\n\n\n", "x\n\n\n"},
           {"a: >-\n  x\n\n\n", "x"},
           {"a: >\n  x\n\n\n", "x\n"},
           {"a: >+\n  x\n", "x\n"},
           {"a: >+\n  x\n\n\n", "x\n\n\n"},
           {"a: >+\n  x\n   y\n\n\n", "x\n y\n\n\n"},
           {"a: >+ # why\n\n  x\n  y\n\nb: 1\n", "\nx y\n\n"},
           {"a: >2+\n    x\n  y\n \nb: 1\n", "  x\ny\n\n"},
           {"a: >+\n  x\n\n  y", "x\ny"},
           {"a: >+\n\n\n", "\n\n"},
           {"a: |\n  x", "x"},
       })) {
    INFO(yaml);
    CHECK(text_of(yaml) == text);
  }
}

TEST_CASE("only line feeds and carriage returns end a line, as in YAML 1.2") {
  for (const std::string_view other : {"\xC2\x85", "\xE2\x80\xA8", "\xE2\x80\xA9"}) {
    CHECK(text_of(cat("a: |\n  x", other, "y\n")) == cat("x", other, "y\n"));
    CHECK(text_of(cat("a: \"x", other, "y\"")) == cat("x", other, "y"));
  }
}

TEST_CASE("a quote that is open at the end is a problem, whatever the end looks like") {
  for (const char* quote : {"'", "\""}) {
    for (const char* end : {"", "\n", "\n\n", "  \n", "\nb: 1\n", "\r\n"}) {
      INFO(quote << end);
      CHECK(problem(cat("a: ", quote, "x", end)).find("F001") != std::string::npos);
      CHECK(problem(cat("a: ", quote, "x", end)).ends_with("illegal EOF in scalar"));
    }
  }
  CHECK(problem("a: 'x\n...\n").ends_with("illegal document indicator in scalar"));
  CHECK(problem("a: |\n  x\n") == "document");
  CHECK(problem("a: 1\n...\n") == "document");
}

TEST_CASE("a second document is a problem beside the first") {
  const std::string complaint =
      " F002 parse fusefile: must contain exactly one yaml document, found more than one";
  CHECK(problem("a: 1\n---\nb: 2\n") == "document, 2:1" + complaint);
  CHECK(problem("a: 1\n---") == "document, 2:1" + complaint);
  CHECK(problem("---\n---\n") == "document, 2:1" + complaint);
  CHECK(problem("a: 1\n...\n# note\nb: 2\n") == "document, 4:1" + complaint);
  CHECK(problem("a: 1\n---\n[[[") == "document, 2:1" + complaint);
  CHECK(problem("---\na: 1\n...\n") == "document");
  CHECK(problem("%YAML 1.2\n---\na: 1\n") == "document");
}

TEST_CASE("what follows a document without a mark is no YAML") {
  CHECK(problem("[a]\n]").starts_with("nothing, "));
  CHECK(problem(",a: b").starts_with("nothing, "));
}

TEST_CASE("bytes that are not text are refused at their place") {
  CHECK(problem("a: \xFF\xFE") == "nothing, 1:4 F004 parse fusefile: yaml: line 1: invalid UTF-8");
  CHECK(problem("a: 1\nb: \xC3") ==
        "nothing, 2:4 F004 parse fusefile: yaml: line 2: invalid UTF-8");
  CHECK(problem("a:\r\n \x1B") ==
        "nothing, 2:2 F004 parse fusefile: yaml: line 2: control characters are not allowed");
  CHECK(problem("a: \xC2\x80").ends_with("control characters are not allowed"));
  CHECK(problem("a: \xC2\x85x") == "document");
  CHECK(problem("\xFF\xFE"
                "a")
            .ends_with("invalid UTF-8"));
}

}  // namespace
}  // namespace fuse
