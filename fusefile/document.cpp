#include "fusefile/document.h"

#include <utility>

#include "base/text.h"

namespace fuse {

namespace {

enum class Html { as_is, escaped };

std::string unit_escape(unsigned char byte) {
  return cat("\\u00", hex_encode(std::string_view(reinterpret_cast<const char*>(&byte), 1)));
}

void write_ascii(std::string& out, char c, Html html) {
  switch (c) {
    case '"':
      out += "\\\"";
      return;
    case '\\':
      out += "\\\\";
      return;
    case '\b':
      out += "\\b";
      return;
    case '\f':
      out += "\\f";
      return;
    case '\n':
      out += "\\n";
      return;
    case '\r':
      out += "\\r";
      return;
    case '\t':
      out += "\\t";
      return;
    default:
      break;
  }
  const auto byte = static_cast<unsigned char>(c);
  const bool special = c == '<' || c == '>' || c == '&';
  if (byte < 0x20 || (special && html == Html::escaped)) {
    out += unit_escape(byte);
  } else {
    out += c;
  }
}

void write_json_text(std::string& out, std::string_view text, Html html) {
  const std::string valid = valid_utf8(text);
  const bool was_valid = valid == text;
  out += '"';
  for (std::size_t i = 0; i < valid.size(); ++i) {
    const std::string_view next = std::string_view(valid).substr(i, 3);
    if (next == "\xE2\x80\xA8" || next == "\xE2\x80\xA9") {
      out += next.back() == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else if (!was_valid && next == "\xEF\xBF\xBD") {
      out += "\\ufffd";
      i += 2;
    } else {
      write_ascii(out, valid[i], html);
    }
  }
  out += '"';
}

// Writes JSON, indented or on one line.
class JsonWriter {
 public:
  JsonWriter(std::string& out, Html html, bool indented)
      : out_(out), html_(html), indented_(indented) {}

  void write(const Document& document) {
    switch (document.kind) {
      case Document::Kind::text:
        write_json_text(out_, document.text, html_);
        return;
      case Document::Kind::number:
        out_ += std::to_string(document.number);
        return;
      case Document::Kind::list:
        write_list(document);
        return;
      case Document::Kind::map:
        write_map(document);
        return;
    }
  }

 private:
  void write_list(const Document& document) {
    if (document.items.empty()) {
      out_ += "[]";
      return;
    }
    open('[');
    bool first = true;
    for (const Document& item : document.items) {
      next(first);
      write(item);
    }
    close(']');
  }

  void write_map(const Document& document) {
    if (document.members.empty()) {
      out_ += "{}";
      return;
    }
    open('{');
    bool first = true;
    for (const DocumentMember& member : document.members) {
      next(first);
      write_json_text(out_, member.key, html_);
      out_ += indented_ ? ": " : ":";
      write(member.value);
    }
    close('}');
  }

  void open(char bracket) {
    out_ += bracket;
    ++depth_;
  }
  void next(bool& first) {
    if (!first) out_ += ',';
    first = false;
    new_line();
  }
  void close(char bracket) {
    --depth_;
    new_line();
    out_ += bracket;
  }
  void new_line() {
    if (indented_) out_ += cat("\n", std::string(2 * depth_, ' '));
  }

  std::string& out_;
  Html html_;
  bool indented_;
  std::size_t depth_ = 0;
};

}  // namespace

void Document::set(std::string_view key, Document value) {
  members.push_back({std::string(key), std::move(value)});
}

void Document::set_text(std::string_view key, std::string_view value) {
  if (!value.empty()) set(key, text_document(value));
}

void Document::set_number(std::string_view key, std::int64_t value) {
  if (value != 0) set(key, number_document(value));
}

void Document::set_texts(std::string_view key, const std::vector<std::string>& values) {
  if (values.empty()) return;
  Document list = list_document();
  for (const std::string& value : values) list.items.push_back(text_document(value));
  set(key, std::move(list));
}

Document text_document(std::string_view text) {
  Document document;
  document.kind = Document::Kind::text;
  document.text = text;
  return document;
}

Document number_document(std::int64_t number) {
  Document document;
  document.kind = Document::Kind::number;
  document.number = number;
  return document;
}

Document list_document() {
  Document document;
  document.kind = Document::Kind::list;
  return document;
}

std::string to_indented_json(const Document& document) {
  std::string out;
  JsonWriter(out, Html::as_is, true).write(document);
  return out;
}

std::string to_compact_json(const Document& document) {
  std::string out;
  JsonWriter(out, Html::escaped, false).write(document);
  return out;
}

}  // namespace fuse
