#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusefile/fields.h"
#include "fusefile/keys.h"
#include "fusefile/report.h"
#include "fusefile/yaml_tree.h"

namespace fuse {

// Reads one mapping whose keys the table knows.  Unknown and repeated keys are
// reported when it is made.  A getter takes a key of its type; a value of the
// wrong kind is reported and reads as absent, and so does null.
class MapReader {
 public:
  // A null `node` or one of kind null reads as a mapping without entries.
  MapReader(const YamlNode* node, std::string_view section, std::string path, Report& report);

  // Whether the key is there with something other than null.
  [[nodiscard]] bool has(std::string_view key) const;
  std::optional<std::string> text(std::string_view key);
  // The same, with "" for absent.
  std::string text_or_empty(std::string_view key);
  // Within 32 bits.
  std::optional<std::int32_t> whole(std::string_view key);
  std::optional<bool> flag(std::string_view key);
  std::vector<std::string> texts(std::string_view key);
  std::vector<std::int32_t> wholes(std::string_view key);
  std::optional<std::int32_t> size_mib(std::string_view key);
  std::optional<std::chrono::nanoseconds> duration(std::string_view key);
  // The mapping's node, for a reader of its own; null when absent.
  const YamlNode* map(std::string_view key);
  // The entries of a mapping with the user's own names; null values included.
  std::vector<YamlField> members(std::string_view key);
  // The elements of a list that are not null.
  std::vector<YamlField> items(std::string_view key);
  // Whatever is there; null when absent.
  [[nodiscard]] const YamlNode* any(std::string_view key) const;

  // The text of a scalar as written; "" when there is none.
  [[nodiscard]] std::string written(std::string_view key) const;

  [[nodiscard]] std::string path_of(std::string_view key) const;

 private:
  void report_unknown(const YamlField& field);
  const YamlField* find(std::string_view key, KeyType type) const;
  std::vector<YamlField> list_items(const YamlField& list, std::string_view wanted);

  std::string_view section_;
  std::string path_;
  Report& report_;
  std::vector<YamlField> fields_{};
};

}  // namespace fuse
