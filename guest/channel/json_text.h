#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/json_reader.h"
#include "base/result.h"

// Shared by the files that write and read messages; private to this folder.
namespace fuse::channel_detail {

// JSON in ASCII.  invalid_argument when a string in it is not UTF-8.
Result<std::string> ascii_json(const nlohmann::json& value);
// The same of a value whose strings are ours; invalid UTF-8 is replaced.
std::string ascii_json_of_ours(const nlohmann::json& value);

std::int32_t int32_of(JsonReader& reader, std::string_view key);
std::string text_of(JsonReader& reader, std::string_view key);

}  // namespace fuse::channel_detail
