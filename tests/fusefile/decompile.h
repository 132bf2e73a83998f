#pragma once

#include <optional>
#include <string>

#include "fusefile/fusefile.h"

namespace fuse {

// A Fusefile that means the same as `file`, written anew from what the compiler
// understood.  Nothing when a text in it is not UTF-8, which YAML cannot hold
// without a tag.
std::optional<std::string> decompile(const Fusefile& file);

}  // namespace fuse
