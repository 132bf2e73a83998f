#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace fuse {

struct DocumentMember;

// A JSON or YAML value to be written; the members of a map keep their order.
struct Document {
  enum class Kind { text, number, list, map };

  Kind kind = Kind::map;
  std::string text{};
  std::int64_t number = 0;
  std::vector<Document> items{};
  std::vector<DocumentMember> members;

  // Appends to a map.
  void set(std::string_view key, Document value);
  // The same, leaving out what is zero or empty.
  void set_text(std::string_view key, std::string_view value);
  void set_number(std::string_view key, std::int64_t value);
  void set_texts(std::string_view key, const std::vector<std::string>& values);
};

struct DocumentMember {
  std::string key{};
  Document value{};
};

Document text_document(std::string_view text);
Document number_document(std::int64_t number);
Document list_document();

// Two blanks a level, no newline at the end; < > & as they are.
std::string to_indented_json(const Document& document);
// On one line without blanks; < > & as \u003c and so on.
std::string to_compact_json(const Document& document);
// Block style, two blanks a level also for lists, text of several lines as |
// blocks where YAML allows it; ends in a newline.
std::string to_yaml(const Document& document);

}  // namespace fuse
