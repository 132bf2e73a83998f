#include "fusefile/map_reader.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <utility>

#include "base/quote.h"
#include "base/suggest.h"
#include "base/text.h"
#include "base/units.h"
#include "fusefile/hints.h"
#include "fusefile/scalar.h"

namespace fuse {

namespace {

bool is_fraction(const YamlField& field) {
  return field.node->kind == YamlNode::Kind::scalar && kind_of(*field.node) == ScalarKind::floating;
}

std::optional<std::int32_t> report_range(const YamlField& field, Report& report) {
  report.error(ProblemCode::out_of_range, field.path, cat(field.node->text, " is out of range"),
               "write a number of at most 2147483647");
  return std::nullopt;
}

// The number that a scalar is when it is a whole one.
std::optional<YamlInteger> whole_number(const YamlNode& node) {
  const ScalarKind kind = kind_of(node);
  if (kind == ScalarKind::integer) {
    const auto number = parse_yaml_integer(node.text);
    return number;
  }
  if (kind != ScalarKind::floating) return std::nullopt;
  const auto number = parse_yaml_float(node.text);
  if (!number || std::isnan(*number) || std::floor(*number) != *number) return std::nullopt;
  constexpr double most = std::numeric_limits<std::int32_t>::max();
  if (std::abs(*number) > most) return YamlInteger{0, false};
  return YamlInteger{static_cast<std::int64_t>(*number), true};
}

std::optional<std::int32_t> report_not_whole(const YamlField& field, bool cpus, Report& report) {
  const YamlNode& node = *field.node;
  if (field.path == "resources.gpu" && is_fraction(field)) {
    report_wrong_kind(field, "int", report,
                      " (gpu counts whole devices or MIG instances, never half a GPU)",
                      "write 1 for a whole GPU, or gpu: 1 and gpu_profile: 1g.10gb for a slice");
  } else if (!cpus || node.kind != YamlNode::Kind::scalar) {
    report_wrong_kind(field, "int", report);
  } else if (is_fraction(field)) {
    report.error(ProblemCode::wrong_kind, field.path,
                 cat(node.text,
                     " is not a whole number of vcpus (a vcpu is not divided; write 1, "
                     "2, ...)"),
                 "write a whole number, as in cpus: 1");
  } else {
    report.error(
        ProblemCode::wrong_kind, field.path,
        cat("invalid ", in_quotes(node.text), " (expected a whole number of vcpus, e.g. 2)"),
        parse_yaml_integer(node.text) ? cat("write ", node.text, " without quotes")
                                      : "write a whole number, as in cpus: 2");
  }
  return std::nullopt;
}

std::optional<std::int32_t> read_whole(const YamlField& field, bool cpus, Report& report) {
  if (field.node->kind != YamlNode::Kind::scalar) return report_not_whole(field, cpus, report);
  const auto number = whole_number(*field.node);
  if (!number) return report_not_whole(field, cpus, report);
  constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  if (!number->fits || number->value > most || number->value < -most - 1) {
    return report_range(field, report);
  }
  return static_cast<std::int32_t>(number->value);
}

}  // namespace

MapReader::MapReader(const YamlNode* node, std::string_view section, std::string path,
                     Report& report)
    : section_(section), path_(std::move(path)), report_(report) {
  if (node == nullptr || is_null(*node)) return;
  if (node->kind != YamlNode::Kind::map) {
    report_wrong_kind({"", path_, node}, path_.empty() ? "Fusefile" : "map", report_);
    return;
  }
  const bool merge = section != "build[]";
  std::vector<YamlField> unknown;
  for (YamlField& field : read_entries(*node, path_, merge, report_)) {
    if (find_key(section_, field.name) == nullptr) {
      unknown.push_back(std::move(field));
    } else if (!is_null(*field.node)) {
      fields_.push_back(std::move(field));
    }
  }
  for (const YamlField& field : unknown) report_unknown(field);
}

void MapReader::report_unknown(const YamlField& field) {
  std::string message = cat("field ", path_below("", field.name), " not found");
  if (!path_.empty()) message += cat(" in ", path_);
  const auto near = suggestions(field.name, names_of(section_));
  report_.error_at(
      field.key, ProblemCode::unknown_key, field.path, cat(message, did_you_mean(near)),
      near.empty() ? hint_for_stranger(field.name, section_) : cat("write ", near.front()));
  // That the key which was meant is missing is the same mistake.
  for (const std::string_view name : near) {
    if (!has(name)) report_.blame(path_of(name));
  }
}

const YamlField* MapReader::find(std::string_view key, [[maybe_unused]] KeyType type) const {
  [[maybe_unused]] const KeyInfo* known = find_key(section_, key);
  assert(known != nullptr && known->type == type && "read a key as the table has it");
  const auto it = std::find_if(fields_.begin(), fields_.end(),
                               [key](const YamlField& field) { return field.name == key; });
  return it == fields_.end() ? nullptr : &*it;
}

std::string MapReader::path_of(std::string_view key) const {
  return path_below(path_, key);
}

bool MapReader::has(std::string_view key) const {
  return std::any_of(fields_.begin(), fields_.end(),
                     [key](const YamlField& field) { return field.name == key; });
}

std::optional<std::string> MapReader::text(std::string_view key) {
  const YamlField* field = find(key, KeyType::text);
  return field == nullptr ? std::nullopt : read_text(*field, report_);
}

std::string MapReader::text_or_empty(std::string_view key) {
  return text(key).value_or("");
}

std::optional<std::int32_t> MapReader::whole(std::string_view key) {
  const KeyInfo* known = find_key(section_, key);
  const bool cpus = known != nullptr && known->type == KeyType::cpus;
  const YamlField* field = find(key, cpus ? KeyType::cpus : KeyType::whole);
  return field == nullptr ? std::nullopt : read_whole(*field, cpus, report_);
}

std::optional<bool> MapReader::flag(std::string_view key) {
  const YamlField* field = find(key, KeyType::flag);
  if (field == nullptr) return std::nullopt;
  std::optional<bool> value;
  if (field->node->kind == YamlNode::Kind::scalar) {
    const bool plain = kind_of(*field->node) == ScalarKind::boolean;
    value = parse_yaml_flag(field->node->text, plain);
  }
  if (!value) report_wrong_kind(*field, "bool", report_, "", hint_for_flag(field->node->text));
  return value;
}

std::vector<YamlField> MapReader::list_items(const YamlField& list, std::string_view wanted) {
  std::vector<YamlField> items;
  if (list.node->kind != YamlNode::Kind::list) {
    report_wrong_kind(list, wanted, report_);
    return items;
  }
  for (const YamlNode* node : list.node->items) {
    if (is_null(*node)) continue;
    YamlField item{"", path_item(list.path, items.size()), node, node->where};
    report_.place(item.path, node->where);
    items.push_back(std::move(item));
  }
  return items;
}

std::vector<std::string> MapReader::texts(std::string_view key) {
  const YamlField* field = find(key, KeyType::texts);
  std::vector<std::string> texts;
  if (field == nullptr) return texts;
  for (const YamlField& item : list_items(*field, "[]string")) {
    texts.push_back(read_text(item, report_).value_or(""));
  }
  return texts;
}

std::vector<std::int32_t> MapReader::wholes(std::string_view key) {
  const YamlField* field = find(key, KeyType::wholes);
  std::vector<std::int32_t> numbers;
  if (field == nullptr) return numbers;
  for (const YamlField& item : list_items(*field, "[]int")) {
    numbers.push_back(read_whole(item, false, report_).value_or(0));
  }
  return numbers;
}

std::optional<std::int32_t> MapReader::size_mib(std::string_view key) {
  const YamlField* field = find(key, KeyType::size);
  const auto text = field == nullptr ? std::nullopt : read_text(*field, report_);
  if (!text || text->empty()) return std::nullopt;
  const auto size = parse_size_mib(*text);
  if (size) return *size;
  report_.error(ProblemCode::bad_value, field->path, size.error().message, hint_for_size(*text));
  return std::nullopt;
}

std::optional<std::chrono::nanoseconds> MapReader::duration(std::string_view key) {
  const YamlField* field = find(key, KeyType::duration);
  const auto text = field == nullptr ? std::nullopt : read_text(*field, report_);
  if (!text || text->empty()) return std::nullopt;
  const auto duration = parse_duration(*text);
  if (duration) return *duration;
  report_.error(ProblemCode::bad_value, field->path, duration.error().message,
                hint_for_duration(*text));
  return std::nullopt;
}

const YamlNode* MapReader::map(std::string_view key) {
  const YamlField* field = find(key, KeyType::map);
  return field == nullptr ? nullptr : field->node;
}

std::vector<YamlField> MapReader::members(std::string_view key) {
  const KeyInfo* known = find_key(section_, key);
  const bool texts = known != nullptr && known->type == KeyType::text_map;
  const YamlField* field = find(key, texts ? KeyType::text_map : KeyType::map_of);
  if (field == nullptr || known == nullptr) return {};
  if (field->node->kind != YamlNode::Kind::map) {
    report_wrong_kind(*field, "map", report_, "",
                      cat("write it as in ", key, ": ", known->example));
    return {};
  }
  return read_entries(*field->node, field->path, true, report_);
}

std::vector<YamlField> MapReader::items(std::string_view key) {
  const KeyInfo* known = find_key(section_, key);
  const bool steps = known != nullptr && known->type == KeyType::steps;
  const YamlField* field = find(key, steps ? KeyType::steps : KeyType::list_of);
  return field == nullptr ? std::vector<YamlField>() : list_items(*field, "list");
}

const YamlNode* MapReader::any(std::string_view key) const {
  const auto it = std::find_if(fields_.begin(), fields_.end(),
                               [key](const YamlField& field) { return field.name == key; });
  return it == fields_.end() ? nullptr : it->node;
}

std::string MapReader::written(std::string_view key) const {
  const YamlNode* node = any(key);
  return node == nullptr ? "" : node->text;
}

}  // namespace fuse
