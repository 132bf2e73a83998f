// Feeds any bytes to the compiler: it has to end, within its limits, with
// problems or with a request that can be rendered.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "fusefile/compile.h"
#include "fusefile/render.h"

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
  return 0;
}
