#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace fuse {

// The value as compact text.  Bytes that are not UTF-8, as an agent's message
// may hold, become U+FFFD.
std::string json_text(const nlohmann::ordered_json& value);

}  // namespace fuse
