#pragma once

#include <string_view>

namespace fuse {

// Shell patterns for one name: * any characters, ? one, [a-z] one of a range,
// [^a-z] one outside, \ takes the next character as it is.
bool is_glob(std::string_view pattern);  // whether it is well formed
// Whether the whole name matches the well-formed pattern.
bool glob_matches(std::string_view pattern, std::string_view name);

}  // namespace fuse
