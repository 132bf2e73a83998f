#pragma once

#include <sstream>
#include <string>
#include <string_view>

#include "fusefile/compile.h"
#include "fusefile/render.h"
#include "tests/catch.h"

namespace fuse {

// The problems of a text, one `LINE:COLUMN: PATH: MESSAGE` a line.
inline std::string complaints_about(std::string_view text) {
  const ParsedFusefile parsed = parse_fusefile(text);
  std::ostringstream out;
  for (const Diagnostic& d : parsed.diagnostics.all()) {
    out << d.where.line << ':' << d.where.column << ": " << d.text() << '\n';
  }
  return out.str();
}

// The model of a text that has no problems.
inline Fusefile parsed(std::string_view text) {
  ParsedFusefile result = parse_fusefile(text);
  INFO(complaints_about(text));
  REQUIRE(result.file.has_value());
  return *std::move(result.file);
}

inline CompiledFusefile compiled(std::string_view text) {
  return compile(parsed(text), "t");
}

}  // namespace fuse
