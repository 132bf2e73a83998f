// Feeds any bytes to the compiler: it has to end, within its limits, with
// problems or with a request that can be rendered, and that comes out the same
// when the file is written anew from what was understood.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fusefile/compile.h"
#include "fusefile/render.h"
#include "tests/fusefile/decompile.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const fuse::ParsedFusefile parsed = fuse::parse_fusefile(text);
  if (parsed.file.has_value() != parsed.diagnostics.ok()) std::abort();
  fuse::Location last{};
  for (const fuse::Diagnostic& diagnostic : parsed.diagnostics.all()) {
    if (diagnostic.where < last) std::abort();
    last = diagnostic.where;
  }
  if (!parsed.file) return 0;
  const fuse::CompiledFusefile compiled = fuse::compile(*parsed.file, "fuzz");
  for (const auto format :
       {fuse::CompileFormat::text, fuse::CompileFormat::json, fuse::CompileFormat::yaml}) {
    if (fuse::render(compiled, format).empty()) std::abort();
  }
  if (!fuse::to_send(*parsed.file, compiled, {}, {})) std::abort();
  const auto anew = fuse::decompile(*parsed.file);
  if (!anew) return 0;
  const fuse::ParsedFusefile again = fuse::parse_fusefile(*anew);
  if (!again.file || fuse::decompile(*again.file) != anew) std::abort();
  const fuse::CompiledFusefile compiled_again = fuse::compile(*again.file, "fuzz");
  if (fuse::render(compiled_again, fuse::CompileFormat::json) !=
      fuse::render(compiled, fuse::CompileFormat::json)) {
    std::abort();
  }
  return 0;
}
