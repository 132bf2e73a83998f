#include "fusefile/document.h"

#include "fusefile/scalar.h"
#include "fusefile/yaml_tree.h"
#include "tests/catch.h"

namespace fuse {
namespace {

Document of_text(std::string_view text) {
  Document document;
  document.set("k", text_document(text));
  return document;
}

std::string yaml(std::string_view text) {
  return to_yaml(of_text(text));
}

TEST_CASE("YAML text is plain where that says the same, else quoted") {
  CHECK(yaml("plain text") == "k: plain text\n");
  CHECK(yaml("ghcr.io/a/b:latest") == "k: ghcr.io/a/b:latest\n");
  CHECK(yaml("a: b") == "k: 'a: b'\n");
  CHECK(yaml("it's: x") == "k: 'it''s: x'\n");
  CHECK(yaml("a #b") == "k: 'a #b'\n");
  CHECK(yaml("a#b") == "k: a#b\n");
  CHECK(yaml("- a") == "k: '- a'\n");
  CHECK(yaml("-a") == "k: -a\n");
  CHECK(yaml("*a") == "k: '*a'\n");
  CHECK(yaml("---") == "k: '---'\n");
  CHECK(yaml(" a") == "k: ' a'\n");
  CHECK(yaml("a ") == "k: 'a '\n");
  CHECK(yaml("a\tb") == "k: \"a\\tb\"\n");
  CHECK(yaml("\xC3\xA9") == "k: \xC3\xA9\n");
  CHECK(yaml("\xF0\x9F\x98\x80") == "k: \"\\U0001F600\"\n");
}

TEST_CASE("YAML text that would read as something else is quoted") {
  for (const char* text : {"", "~", "null", "true", "False", "yes", "Off", "n", "1", "-1", "0x1F",
                           "010", "1_000", "1.5", "1e3", ".inf", "2024-01-01", "12:30", "<<"}) {
    INFO(text);
    CHECK(yaml(text) == "k: \"" + std::string(text) + "\"\n");
  }
  CHECK(yaml("1.2.3") == "k: 1.2.3\n");
  CHECK(yaml("yesterday") == "k: yesterday\n");
}

TEST_CASE("YAML keys that are long or of several lines stand on their own") {
  const auto keyed = [](std::string_view key) {
    Document document;
    document.set(key, text_document("v"));
    return to_yaml(document);
  };
  const std::string longest(128, 'k');
  CHECK(keyed(longest) == longest + ": v\n");
  CHECK(keyed(longest + "k") == "? " + longest + "k\n: v\n");
  CHECK(keyed("a\nb") == "? |-\n  a\n  b\n: v\n");
  CHECK(keyed("~") == "\"~\": v\n");
}

TEST_CASE("YAML text of several lines is a block that keeps its end") {
  CHECK(yaml("a\nb\n") == "k: |\n  a\n  b\n");
  CHECK(yaml("a\nb") == "k: |-\n  a\n  b\n");
  CHECK(yaml("a\n\n") == "k: |+\n  a\n\n");
  CHECK(yaml("\n") == "k: |2+\n\n");
  CHECK(yaml("a\n\n  b\n") == "k: |\n  a\n\n    b\n");
  CHECK(yaml(" a\nb\n") == "k: |2\n   a\n  b\n");
  CHECK(yaml("a\tb\n") == "k: |\n  a\tb\n");
  CHECK(yaml("a \nb\n") == "k: \"a \\nb\\n\"\n");
  CHECK(yaml("a\nb ") == "k: \"a\\nb \"\n");
  CHECK(yaml("a\x01\n") == "k: \"a\\x01\\n\"\n");
}

TEST_CASE("what is written as YAML reads back the same") {
  const std::string alphabet = " \n\t'\"\\:#-ab1,[]{}&*!|>%@`?~<.\x01\xC3\xA9";
  std::uint32_t state = 12345;
  for (int round = 0; round < 3000; ++round) {
    std::string text;
    for (std::uint32_t length = round % 7 + 1; length > 0; --length) {
      state = state * 1664525U + 1013904223U;
      const char c = alphabet[(state >> 16U) % alphabet.size()];
      // Only whole characters.
      text += c == '\xC3' || c == '\xA9' ? std::string("\xC3\xA9") : std::string(1, c);
    }
    Document document = of_text(text);
    document.set("after", text_document("x"));
    const std::string written = to_yaml(document);
    INFO(written);
    Diagnostics diagnostics;
    const auto read = parse_yaml(written, {}, diagnostics);
    REQUIRE(read);
    REQUIRE(read->root->entries.size() == 2);
    CHECK(read->root->entries[0].value->text == text);
    CHECK(kind_of(*read->root->entries[0].value) == ScalarKind::text);
  }
}

TEST_CASE("lists and maps are nested by two blanks") {
  Document item;
  item.set_number("port", 80);
  item.set_text("as", "web");
  Document list = list_document();
  list.items = {item, text_document("a\nb"), list_document(), Document()};
  Document document;
  document.set("list", list);
  Document inner;
  inner.set("deep", item);
  inner.set("none", Document());
  document.set("map", inner);
  CHECK(to_yaml(document) ==
        "list:\n  - port: 80\n    as: web\n  - |-\n    a\n    b\n  - []\n  - {}\n"
        "map:\n  deep:\n    port: 80\n    as: web\n  none: {}\n");
  CHECK(to_indented_json(document) ==
        "{\n  \"list\": [\n    {\n      \"port\": 80,\n      \"as\": \"web\"\n    },\n"
        "    \"a\\nb\",\n    [],\n    {}\n  ],\n  \"map\": {\n    \"deep\": {\n"
        "      \"port\": 80,\n      \"as\": \"web\"\n    },\n    \"none\": {}\n  }\n}");
  CHECK(to_compact_json(document) ==
        R"({"list":[{"port":80,"as":"web"},"a\nb",[],{}],"map":{"deep":{"port":80,"as":"web"},)"
        R"("none":{}}})");
}

TEST_CASE("JSON text escapes what it has to, and HTML only when compact") {
  const Document document = text_document("<&>\"\\\b\f\n\r\t\x01\x7F\xE2\x80\xA8\xE2\x80\xA9\xFFz");
  CHECK(to_indented_json(document) ==
        "\"<&>\\\"\\\\\\b\\f\\n\\r\\t\\u0001\x7F\\u2028\\u2029\\ufffdz\"");
  CHECK(to_compact_json(document) ==
        "\"\\u003c\\u0026\\u003e\\\"\\\\\\b\\f\\n\\r\\t\\u0001\x7F\\u2028\\u2029\\ufffdz\"");
  CHECK(to_compact_json(text_document("\xEF\xBF\xBD")) == "\"\xEF\xBF\xBD\"");
}

}  // namespace
}  // namespace fuse
