#include "fusefile/diagnostics.h"

#include <map>
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

TEST_CASE("every kind of problem has a code of its own, which stays what it is") {
  const std::map<ProblemCode, std::string_view> known{
      {ProblemCode::syntax, "F001"},          {ProblemCode::documents, "F002"},
      {ProblemCode::limit, "F003"},           {ProblemCode::encoding, "F004"},
      {ProblemCode::unknown_key, "F010"},     {ProblemCode::duplicate_key, "F011"},
      {ProblemCode::wrong_kind, "F012"},      {ProblemCode::bad_version, "F013"},
      {ProblemCode::required, "F020"},        {ProblemCode::exclusive, "F021"},
      {ProblemCode::bad_value, "F022"},       {ProblemCode::out_of_range, "F023"},
      {ProblemCode::repeated_value, "F024"},  {ProblemCode::bad_path, "F025"},
      {ProblemCode::reserved_path, "F026"},   {ProblemCode::gpu_count, "F030"},
      {ProblemCode::gpu_profile, "F031"},     {ProblemCode::gpu_profile_alone, "F032"},
      {ProblemCode::gpu_without_mig, "F033"}, {ProblemCode::source_missing, "F040"},
      {ProblemCode::source_outside, "F041"},  {ProblemCode::source_kind, "F042"},
      {ProblemCode::source_size, "F043"},     {ProblemCode::ignore_pattern, "F044"}};
  std::set<std::string_view> codes;
  for (const auto& [kind, code] : known) {
    CHECK(to_string(kind) == code);
    codes.insert(code);
  }
  CHECK(codes.size() == known.size());
  CHECK(static_cast<std::size_t>(ProblemCode::ignore_pattern) + 1 == known.size());
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
