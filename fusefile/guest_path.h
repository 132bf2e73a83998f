#pragma once

#include <string>
#include <string_view>

namespace fuse {

// Paths in the guest and paths relative to the Fusefile, as text: '/' between
// names, nothing looked up.

// The shortest equal path: no "//", no ".", ".." only at the start; "" is ".".
std::string clean_path(std::string_view path);
// The cleaned path without its last name: "a/b" is "a", "b" is ".", "/b" is "/".
std::string parent_path(std::string_view path);
// `path` when it is absolute, else below `base`; cleaned.
std::string resolve_path(std::string_view base, std::string_view path);
// Whether one of the names in the path is "..".
bool has_parent_segment(std::string_view path);
bool has_newline_or_nul(std::string_view path);
// Whether the cleaned, absolute path is `dir` or below it.
bool is_at_or_below(std::string_view path, std::string_view dir);

}  // namespace fuse
