#pragma once

#include <string>
#include <string_view>

namespace fuse {

// "0.1.0".
std::string_view version();

// The hex of this executable's GNU build id (ld --build-id), which is the same
// only for the same build; "unknown" when it has none.
std::string build_id();

}  // namespace fuse
