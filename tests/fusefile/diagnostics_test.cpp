#include "fusefile/diagnostics.h"

#include <set>
#include <sstream>

#include "fusefile/locations.h"
#include "tests/catch.h"

namespace fuse {
namespace {

std::string printed(const Diagnostic& diagnostic, std::string_view text,
                    const PrintOptions& options) {
  std::ostringstream out;
  print(out, diagnostic, "F", text, options);
  return out.str();
}

Diagnostic at(int line, int column, std::string message = "m") {
  return {ProblemCode::bad_value, {line, column}, "p", std::move(message), ""};
}

TEST_CASE("a problem is one line, without what is unknown") {
  CHECK(printed(at(2, 3), "", {}) == "F:2:3: p: m\n");
  CHECK(printed({ProblemCode::syntax, {}, "", "m", "do x"}, "", {}) == "F: m\n");
  Diagnostic warning = at(1, 1);
  warning.severity = Severity::warning;
  CHECK(printed(warning, "", {}) == "F:1:1: warning: p: m\n");
}

TEST_CASE("the caret stands below the column, past tabs and wide characters") {
  CHECK(printed(at(1, 3), "a: b", {.excerpt = true}) == "F:1:3: p: m\n  a: b\n    ^\n");
  CHECK(printed(at(2, 2), "x\n\ta", {.excerpt = true}) == "F:2:2: p: m\n  \ta\n  \t^\n");
  CHECK(printed(at(1, 5), "\xC3\xA9: b", {.excerpt = true}) ==
        "F:1:5: p: m\n  \xC3\xA9: b\n     ^\n");
  CHECK(printed(at(2, 1), "a\r\nb\r\n", {.excerpt = true}) == "F:2:1: p: m\n  b\n  ^\n");
  CHECK(printed(at(2, 1), "a\rb", {.excerpt = true}) == "F:2:1: p: m\n  b\n  ^\n");
  CHECK(printed(at(1, 1),
                "\xEF\xBB\xBF"
                "a",
                {.excerpt = true}) == "F:1:1: p: m\n  a\n  ^\n");
}

TEST_CASE("an excerpt shows nothing that a terminal would obey, nor too much") {
  CHECK(printed(at(1, 1), "a\x1B[31m\xFF", {.excerpt = true}) ==
        "F:1:1: p: m\n  a?[31m\xEF\xBF\xBD\n  ^\n");
  CHECK(printed(at(9, 1), "a\n", {.excerpt = true}) == "F:9:1: p: m\n");
  const std::string wide(500, 'x');
  CHECK(printed(at(1, 1), wide, {.excerpt = true}) ==
        "F:1:1: p: m\n  " + std::string(160, 'x') + "\n  ^\n");
  CHECK(printed(at(1, 300), wide, {.excerpt = true}) == "F:1:300: p: m\n");
}

TEST_CASE("colour is only added when asked for") {
  const std::string plain = printed(at(1, 1), "a", {.excerpt = true});
  CHECK(plain.find('\033') == std::string::npos);
  std::string coloured = printed(at(1, 1), "a", {.excerpt = true, .colour = true});
  CHECK(coloured.find("\033[1;31m") != std::string::npos);
  // Without the colours it is the same text.
  for (std::size_t i = coloured.find('\033'); i != std::string::npos; i = coloured.find('\033')) {
    coloured.erase(i, coloured.find('m', i) - i + 1);
  }
  CHECK(coloured == plain);
}

TEST_CASE("problems are sorted by place and keep their order within one") {
  Diagnostics diagnostics;
  diagnostics.add(at(2, 1, "c"));
  diagnostics.add(at(1, 9, "b"));
  diagnostics.add(at(2, 1, "d"));
  diagnostics.add(at(1, 2, "a"));
  std::string order;
  for (const Diagnostic& d : diagnostics.all()) order += d.message;
  CHECK(order == "abcd");
  CHECK_FALSE(diagnostics.ok());
  Diagnostics warnings;
  Diagnostic warning = at(1, 1);
  warning.severity = Severity::warning;
  warnings.add(warning);
  CHECK(warnings.ok());
}

TEST_CASE("every kind of problem has a code of its own") {
  std::set<std::string_view> codes;
  int kinds = 0;
  for (int i = 0; i <= static_cast<int>(ProblemCode::ignore_pattern); ++i, ++kinds) {
    const std::string_view code = to_string(static_cast<ProblemCode>(i));
    CHECK(code != "F000");
    codes.insert(code);
  }
  CHECK(codes.size() == static_cast<std::size_t>(kinds));
}

TEST_CASE("a field that is not in the file is placed where it would be") {
  Locations locations;
  locations.add("", {1, 1});
  locations.add("files", {2, 1});
  locations.add("files[0]", {3, 5});
  locations.add("files[0]", {9, 9});
  CHECK(locations.find("files[0].mode") == Location{3, 5});
  CHECK(locations.find("files[1]") == Location{2, 1});
  CHECK(locations.find("healthcheck.http.port") == Location{1, 1});
  CHECK(Locations().find("x") == Location{});
}

}  // namespace
}  // namespace fuse
