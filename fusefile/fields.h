#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusefile/report.h"
#include "fusefile/yaml_tree.h"

namespace fuse {

// A value below a mapping or list, with the path of error texts.  `node` is
// never null here; YAML's null is a node of kind null.
struct YamlField {
  std::string name{};  // the key; "" in a list
  std::string path{};
  const YamlNode* node = nullptr;
  Location key{};  // where the key stands; in a list, the value
};

// The entries of a mapping, merge keys followed unless `merge` is off, in the
// file's order, each name once.  Reports repeated keys and keys that are no
// scalars, and notes where each value stands.
std::vector<YamlField> read_entries(const YamlNode& map, std::string_view path, bool merge,
                                    Report& report);

// Whether the value means "not set".
bool is_null(const YamlNode& node);
// "!!int", "!!seq" and their sisters.
std::string_view tag_of(const YamlNode& node);
// The text of a scalar as written; reports anything else.
std::optional<std::string> read_text(const YamlField& field, Report& report);
// Reports that the value should have been `wanted` ("int", "[]string").
void report_wrong_kind(const YamlField& field, std::string_view wanted, Report& report,
                       std::string_view more = "", std::string hint = "");

}  // namespace fuse
