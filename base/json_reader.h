#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fuse {

// Reads the fields of one JSON object.  A field that is missing or null is
// absent; one of the wrong kind is remembered as an error that names it by
// `path`, and reads as absent, so a caller reads everything and asks finish()
// once.  Unknown fields are ignored, as the wire demands.  Keeps a reference to
// the value: it must outlive the reader.
class JsonReader {
 public:
  // `path` is "" at the top, "spec" inside spec.
  JsonReader(const nlohmann::json& value, std::string path);

  [[nodiscard]] bool has(std::string_view key) const;
  std::optional<std::string> text(std::string_view key);
  std::optional<std::int64_t> integer(std::string_view key);
  std::optional<bool> flag(std::string_view key);
  std::optional<std::vector<std::string>> texts(std::string_view key);
  std::optional<std::map<std::string, std::string>> text_map(std::string_view key);
  // An object below, or null JSON when absent.
  const nlohmann::json* object(std::string_view key);
  // The elements of an array below, or none.
  std::vector<const nlohmann::json*> elements(std::string_view key);
  // "spec.cpus" for "cpus".
  [[nodiscard]] std::string path_of(std::string_view key) const;

  // Remembers a problem found by the caller in field `key`.
  void complain(std::string_view key, std::string_view problem);
  // Carries over the problem of a reader further down.
  void complain_with(const Error& problem);
  // The first problem, or success.
  [[nodiscard]] Result<void> finish() const;

 private:
  const nlohmann::json* find(std::string_view key) const;

  const nlohmann::json& value_;
  std::string path_;
  std::optional<Error> problem_{};
};

// Parses one JSON document; invalid_argument "invalid JSON body: ..."
// otherwise. Nesting beyond 64 is refused.
Result<nlohmann::json> parse_json(std::string_view text);

}  // namespace fuse
