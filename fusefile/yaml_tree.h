#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "fusefile/diagnostics.h"

namespace fuse {

struct YamlNode;

struct YamlEntry {
  const YamlNode* key = nullptr;
  const YamlNode* value = nullptr;
};

// One node of a YAML document.  An alias is a node of its own, at its own
// place, that shares the children of what it stands for.
struct YamlNode {
  enum class Kind { null, scalar, list, map };

  Kind kind = Kind::null;
  Location where{};
  std::string tag{};    // as resolved ("tag:yaml.org,2002:int"), "" when none was written
  std::string text{};   // of a scalar
  bool quoted = false;  // a scalar that cannot be anything but text
  std::vector<const YamlNode*> items{};
  std::vector<YamlEntry> entries{};  // with repeated keys and merge keys as written
};

// A document with its nodes.  `root` is null for an empty document.
struct YamlDocument {
  std::vector<std::unique_ptr<YamlNode>> nodes{};
  const YamlNode* root = nullptr;
};

struct YamlLimits {
  std::size_t bytes = 1U << 20U;
  std::size_t nodes = 20'000;    // with every alias counted as what it stands for
  std::size_t text = 4U << 20U;  // bytes of scalars, counted the same way
  std::size_t depth = 64;
};

// Reads one YAML document.  What is no YAML at all or is beyond the limits
// yields nothing and one problem; a second document is a problem beside the
// first document.
std::optional<YamlDocument> parse_yaml(std::string_view text, const YamlLimits& limits,
                                       Diagnostics& diagnostics);

}  // namespace fuse
