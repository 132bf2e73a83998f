#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "fusefile/compile.h"

namespace fuse {

enum class CompileFormat { text, json, yaml };
enum class CompilePart { spec, manifest, startup_script, expose, secrets };

std::optional<CompileFormat> compile_format_of(std::string_view text);
// By the names of --only: spec, manifest, startup-script, expose, secrets.
std::optional<CompilePart> compile_part_of(std::string_view text);

// What `fuse compile` prints.  Values of secrets are never part of it.
std::string render(const CompiledFusefile& compiled, CompileFormat format);
std::string render_part(const CompiledFusefile& compiled, CompilePart part);

}  // namespace fuse
