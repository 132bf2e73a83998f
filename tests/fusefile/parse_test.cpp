#include "tests/fusefile/compiling.h"

namespace fuse {
namespace {

TEST_CASE("a misspelt key is shown at its place, with the nearest name") {
  const std::string text = "version: 1\nresources:\n  gpu_knid: h100\n";
  const ParsedFusefile parsed = parse_fusefile(text);
  std::ostringstream out;
  print(out, parsed.diagnostics, "Fusefile", text, {.excerpt = true});
  CHECK(out.str() ==
        "Fusefile:3:3: resources.gpu_knid: field gpu_knid not found in resources, did you mean "
        "\"gpu_kind\"?\n"
        "    gpu_knid: h100\n"
        "    ^\n"
        "  hint: write gpu_kind\n");
}

TEST_CASE("the one-byte file `,` ends in a syntax error") {
  CHECK(complaints_about(",") ==
        "1:1: parse fusefile: yaml: line 1: did not find expected <document start>\n");
}

TEST_CASE("an empty file is an empty Fusefile") {
  for (const char* text : {"", "\n", "# only this\n", "---\n", "~\n", "\xEF\xBB\xBF"}) {
    CHECK(complaints_about(text) == "1:1: version: must be 1\n");
  }
}

}  // namespace
}  // namespace fuse
