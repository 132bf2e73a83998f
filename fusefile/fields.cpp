#include "fusefile/fields.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "base/quote.h"
#include "base/text.h"
#include "fusefile/scalar.h"

namespace fuse {

namespace {

bool is_merge(const YamlNode& key) {
  return key.kind == YamlNode::Kind::scalar && kind_of(key) == ScalarKind::merge;
}

// " `value`", cut when it is long; "" for what is no scalar.
std::string value_of(const YamlNode& node) {
  if (node.kind != YamlNode::Kind::scalar) return "";
  std::string text = node.text;
  if (text.size() > 10) text = cat(valid_utf8(std::string_view(text).substr(0, 7)), "...");
  // What a terminal would obey, or would not show, is written out.
  const std::string quoted = in_quotes(text);
  const std::string_view safe = std::string_view(quoted).substr(1, quoted.size() - 2);
  return cat(" `", std::any_of(text.begin(), text.end(), is_control) ? safe : text, "`");
}

// Gathers the entries of one mapping and of what is merged into it.
class EntryReader {
 public:
  EntryReader(std::string_view path, Report& report) : path_(path), report_(report) {}

  void read(const YamlNode& map, bool merge) {
    std::map<std::string_view, Location> own;
    std::vector<const YamlNode*> merged;
    for (const YamlEntry& entry : map.entries) {
      if (!is_name(*entry.key)) continue;
      const std::string_view name = is_null(*entry.key) ? "" : std::string_view(entry.key->text);
      const auto [first, is_new] = own.emplace(name, entry.key->where);
      if (!is_new) {
        report_repeated(name, entry.key->where, first->second);
      } else if (merge && is_merge(*entry.key)) {
        merged.push_back(entry.value);
      } else {
        add(name, *entry.key, *entry.value);
      }
    }
    for (const YamlNode* node : merged) read_merged(*node);
  }

  std::vector<YamlField> fields{};

 private:
  bool is_name(const YamlNode& key) {
    if (key.kind == YamlNode::Kind::scalar || key.kind == YamlNode::Kind::null) return true;
    report_.error_at(
        key.where, ProblemCode::wrong_kind, path_,
        cat("line ", key.where.line, ": cannot unmarshal ", tag_of(key), " into string"),
        "a key is a plain name");
    return false;
  }

  void report_repeated(std::string_view name, Location where, Location first) {
    report_.error_at(where, ProblemCode::duplicate_key, path_below(path_, name),
                     cat("mapping key ", in_quotes(name), " already defined at line ", first.line),
                     cat("the first one is at ", first.line, ":", first.column, "; keep one"));
  }

  void add(std::string_view name, const YamlNode& key, const YamlNode& value) {
    if (!names_.emplace(name).second) return;  // what is merged in does not replace
    YamlField field{std::string(name), path_below(path_, name), &value, key.where};
    // A mapping's own place is that of its first key, which says little.
    const bool is_scalar = value.kind == YamlNode::Kind::scalar && !is_null(value);
    report_.place(field.path, is_scalar ? value.where : key.where);
    fields.push_back(std::move(field));
  }

  void read_merged(const YamlNode& value) {
    if (value.kind == YamlNode::Kind::map) {
      read(value, true);
      return;
    }
    const bool maps_only = value.kind == YamlNode::Kind::list &&
                           std::all_of(value.items.begin(), value.items.end(), [](auto* item) {
                             return item->kind == YamlNode::Kind::map;
                           });
    if (maps_only) {
      for (const YamlNode* item : value.items) read(*item, true);
    } else if (!is_null(value)) {
      report_.error_at(value.where, ProblemCode::wrong_kind, path_,
                       "map merge requires map or sequence of maps as the value",
                       "write <<: *NAME, where &NAME stands at a mapping");
    }
  }

  std::string path_;
  Report& report_;
  std::set<std::string, std::less<>> names_{};
};

}  // namespace

bool is_null(const YamlNode& node) {
  return node.kind == YamlNode::Kind::null ||
         (node.kind == YamlNode::Kind::scalar && kind_of(node) == ScalarKind::null);
}

std::string_view tag_of(const YamlNode& node) {
  switch (node.kind) {
    case YamlNode::Kind::null:
      return "!!null";
    case YamlNode::Kind::list:
      return "!!seq";
    case YamlNode::Kind::map:
      return "!!map";
    case YamlNode::Kind::scalar:
      break;
  }
  return short_tag(kind_of(node));
}

std::optional<std::string> read_text(const YamlField& field, Report& report) {
  if (field.node->kind != YamlNode::Kind::scalar) {
    report_wrong_kind(field, "string", report);
    return std::nullopt;
  }
  if (field.node->tag != "tag:yaml.org,2002:binary") return field.node->text;
  std::string packed = field.node->text;
  packed.erase(std::remove_if(packed.begin(), packed.end(),
                              [](char c) { return c == ' ' || c == '\n' || c == '\t'; }),
               packed.end());
  auto bytes = base64_decode(packed);
  if (!bytes) {
    report.error(ProblemCode::bad_value, field.path, "!!binary value contains invalid base64 data",
                 "write base64 with its padding, or plain text without !!binary");
  }
  return bytes;
}

namespace {

// In plainer words than the message.
std::string_view hint_for(std::string_view wanted) {
  if (wanted == "int") return "write a whole number, without quotes";
  if (wanted == "bool") return "write true or false";
  if (wanted == "string") return "write one text here";
  if (wanted == "map") return "write keys with values here, indented or in {}";
  if (wanted == "Fusefile") return "a Fusefile is keys with values, the first one version: 1";
  return "write a list here: [a, b], or a line with a dash for each";
}

}  // namespace

void report_wrong_kind(const YamlField& field, std::string_view wanted, Report& report,
                       std::string_view more, std::string hint) {
  const YamlNode& node = *field.node;
  report.error_at(node.where, ProblemCode::wrong_kind, field.path,
                  cat("line ", node.where.line, ": cannot unmarshal ", tag_of(node), value_of(node),
                      " into ", wanted, more),
                  hint.empty() ? std::string(hint_for(wanted)) : std::move(hint));
}

std::vector<YamlField> read_entries(const YamlNode& map, std::string_view path, bool merge,
                                    Report& report) {
  EntryReader reader(path, report);
  reader.read(map, merge);
  return std::move(reader.fields);
}

}  // namespace fuse
