#pragma once

#include <string>

namespace fuse {

// The Fusefile's JSON Schema (draft 2020-12), for editors: what `fuse schema`
// prints.
std::string fusefile_schema();

// The keys as a Markdown page, a table for each section.
std::string fusefile_reference();

}  // namespace fuse
