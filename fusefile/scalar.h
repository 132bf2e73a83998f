#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "fusefile/yaml_tree.h"

namespace fuse {

// What YAML takes a scalar for.
enum class ScalarKind { null, boolean, integer, floating, timestamp, merge, text };

// "!!int" and its sisters.
std::string_view short_tag(ScalarKind kind);

// What a scalar that is neither quoted nor tagged is.
ScalarKind kind_of_plain(std::string_view text);
// By the written tag, else text when quoted, else as a plain one.
ScalarKind kind_of(const YamlNode& scalar);

// A whole number: decimal, 0x, 0o, 0b or with a leading 0 octal, a sign before
// and _ between digits.  Nothing when it is none; `fits` tells 64 bits.
struct YamlInteger {
  std::int64_t value = 0;
  bool fits = true;
};
std::optional<YamlInteger> parse_yaml_integer(std::string_view text);
// Decimal with point or exponent, or .inf and .nan.
std::optional<double> parse_yaml_float(std::string_view text);
// Also the words y, yes, on and n, no, off in their usual cases.
std::optional<bool> parse_yaml_flag(std::string_view text, bool plain);

// Whether readers of older YAML would take the plain text for a flag or a
// number of base 60.
bool is_old_flag(std::string_view text);
bool is_base60(std::string_view text);

}  // namespace fuse
