// Files that are made to take long.  What takes more than its size warrants runs
// into the time that a test has at most.
#include <array>

#include "base/text.h"
#include "fusefile/yaml_tree.h"
#include "tests/fusefile/compiling.h"

namespace fuse {
namespace {

std::string filled_with(std::string_view beginning, std::string_view part, std::size_t size) {
  std::string text(beginning);
  while (text.size() + part.size() <= size) text += part;
  return text;
}

void read_to_the_end(const std::string& text) {
  const ParsedFusefile parsed = parse_fusefile(text);
  std::ostringstream out;
  print(out, parsed.diagnostics, "Fusefile", text, {.excerpt = true});
  if (parsed.file) out << render(compile(*parsed.file, "t"), CompileFormat::yaml);
  CHECK_FALSE(out.str().empty());
}

TEST_CASE("a file of one thing over and over comes to an end, whatever the thing is") {
  constexpr auto parts = std::to_array<std::string_view>(
      {" ",       "\n",       "\t",          "a",       "a\n",     "a: b\n", "a: ",      ": ",
       ":",       "- ",       "-\n",         "- a\n",   "-",       "? ",     "? a\n",    "?\n",
       ",",       "[",        "]",           "{",       "}",       "{a: ",   "[a, ",     "[a: ",
       "[]",      "{},",      "'",           "''",      "\"",      "\\",     "\"a\" ",   "\"\\n\"",
       "\\u0041", "|",        "|\n",         "|\n a\n", ">\n a\n", ">",      "&",        "&a ",
       "&a\n",    "*",        "*a ",         "*a, ",    "!",       "!a ",    "!!int ",   "!<",
       "%",       "%a\n",     "%TAG ! a\n",  "#",       "# a\n",   " #",     "---\n",    "...\n",
       "--- a\n", "@",        "`",           "<<: ",    "\r",      "\r\n",   "é",        "🚀",
       "\u0085",  "0",        "1e",          "~\n",     "a\n b\n", "  a\n",  "a:\n  - ", "x: &a\n",
       "\"a\": ", "'a': 1\n", "? [a]\n: b\n"});
  for (const std::string_view beginning :
       {"", "version: 1\nrun: ", "version: 1\nrun: [", "version: 1\nenv: {", "version: 1\nrun: \"",
        "version: 1\nrun: |\n  ", "a: &a [x]\nb: ["}) {
    for (const std::string_view part : parts) {
      INFO(beginning << " and then " << part);
      read_to_the_end(filled_with(beginning, part, YamlLimits().bytes / 64));
    }
  }
  // As large as is read at all.
  for (const std::string_view part :
       {"a: b\n", "- ", "[", "{a: ", "? ", "\"a\" ", "*a ", "a\n b\n"}) {
    INFO(part);
    read_to_the_end(filled_with("", part, YamlLimits().bytes));
  }
}

std::size_t problems_of(const std::string& text) {
  const ParsedFusefile parsed = parse_fusefile(text);
  return parsed.diagnostics.all().size();
}

TEST_CASE("as many problems as a file can have are all shown") {
  std::string text = "version: 1\n";
  for (int i = 0; i < 9000; ++i) text += cat("unknown_key_of_some_length_", i, ": a\n");
  read_to_the_end(text);
  CHECK(problems_of(text) == 9000);
  std::string env = "version: 1\nenv:\n";
  for (int i = 0; i < 6000; ++i) env += cat("  ", i, "x: {}\n");
  read_to_the_end(env);
  CHECK(problems_of(env) == 12'000);
}

}  // namespace
}  // namespace fuse
