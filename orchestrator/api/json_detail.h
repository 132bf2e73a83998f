#pragma once

#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json_reader.h"
#include "base/text.h"
#include "orchestrator/api/types.h"

// Shared by the files that write and read the wire's JSON; private to this
// folder.
namespace fuse::json_detail {

using Json = nlohmann::ordered_json;

// Adds a field unless it is empty: "" , 0, false and empty containers are left
// out.
template <class T>
void put(Json& object, const char* key, const T& value) {
  if constexpr (requires { value.empty(); }) {
    if (value.empty()) return;
  } else {
    if (value == T{}) return;
  }
  object[key] = value;
}

template <class T>
void put(Json& object, const char* key, const std::optional<T>& value) {
  if (value) object[key] = *value;
}

// A 32-bit field; out of range is a complaint, absent is 0.
inline std::int32_t int32_in(JsonReader& reader, std::string_view key) {
  const auto value = reader.integer(key).value_or(0);
  if (value < std::numeric_limits<std::int32_t>::min() ||
      value > std::numeric_limits<std::int32_t>::max()) {
    reader.complain(key, "is out of range");
    return 0;
  }
  return static_cast<std::int32_t>(value);
}

// A field that is one of an enumeration's names; `of` is its from-text
// function.
template <class F>
auto choice_in(JsonReader& reader, std::string_view key, F of) -> decltype(of(std::string_view())) {
  const auto text = reader.text(key);
  if (!text) return std::nullopt;
  auto value = of(*text);
  if (!value) reader.complain(key, cat("\"", *text, "\" is not one of its values"));
  return value;
}

// Reads the object at `key` with `parse`, carrying its problem over.
template <class T, class F>
std::optional<T> object_in(JsonReader& reader, std::string_view key, F parse) {
  const nlohmann::json* const found = reader.object(key);
  if (found == nullptr) return std::nullopt;
  JsonReader inner(*found, reader.path_of(key));
  T value = parse(inner);
  if (auto done = inner.finish(); !done) {
    reader.complain_with(done.error());
    return std::nullopt;
  }
  return value;
}

// Reads the objects of the list at `key` with `parse`.
template <class T, class F>
std::vector<T> objects_in(JsonReader& reader, std::string_view key, F parse) {
  std::vector<T> out;
  std::size_t index = 0;
  for (const nlohmann::json* element : reader.elements(key)) {
    JsonReader inner(*element, cat(reader.path_of(key), "[", index++, "]"));
    out.push_back(parse(inner));
    if (auto done = inner.finish(); !done) reader.complain_with(done.error());
  }
  return out;
}

// Reads a whole document with `read`, or gives the first problem.
template <class T, class F>
Result<T> read_all(const nlohmann::json& value, std::string path, F read) {
  JsonReader reader(value, std::move(path));
  T out = read(reader);
  if (auto done = reader.finish(); !done) return done.error();
  return out;
}

// Shared by requests and environments.
ResourceSpec read_spec(JsonReader& reader);

}  // namespace fuse::json_detail
