#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

#include "base/text.h"
#include "fusefile/document.h"
#include "fusefile/scalar.h"

namespace fuse {

namespace {

// One character of a text, decoded.
struct Character {
  std::string_view bytes{};
  std::uint32_t point = 0;
};

std::vector<Character> characters_of(std::string_view text) {
  std::vector<Character> characters;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1U : lead < 0xE0 ? 2U : lead < 0xF0 ? 3U : 4U;
    Character character{text.substr(i, length), lead};
    if (length > 1) character.point &= 0xFFU >> (length + 1);
    for (const char c : character.bytes.substr(1)) {
      character.point = (character.point << 6U) | (static_cast<unsigned char>(c) & 0x3FU);
    }
    characters.push_back(character);
    i += length;
  }
  return characters;
}

bool is_break(std::uint32_t point) {
  return point == '\n' || point == '\r' || point == 0x85 || point == 0x2028 || point == 0x2029;
}

bool is_blank(std::uint32_t point) {
  return point == ' ' || point == '\t';
}

bool is_printable(std::uint32_t point) {
  return point == '\n' || (point >= 0x20 && point <= 0x7E) ||
         (point >= 0xA0 && point <= 0xFFFD && point != 0xFEFF);
}

bool is_any_of(std::uint32_t point, std::string_view set) {
  return point < 0x80 && set.find(static_cast<char>(point)) != std::string_view::npos;
}

// In which styles a text may be written in block context.
struct Styles {
  bool plain = true;
  bool single_quoted = true;
  bool literal = true;
};

bool has_indicator(const std::vector<Character>& text, std::size_t i) {
  const bool before_blank =
      i + 1 >= text.size() || is_blank(text[i + 1].point) || is_break(text[i + 1].point);
  if (i == 0) {
    return is_any_of(text[i].point, "#,[]{}&*!|>'\"%@`") ||
           (is_any_of(text[i].point, "?:-") && before_blank);
  }
  const bool after_blank = is_blank(text[i - 1].point) || is_break(text[i - 1].point);
  return (text[i].point == ':' && before_blank) || (text[i].point == '#' && after_blank);
}

Styles styles_of(std::string_view text) {
  Styles styles;
  const auto characters = characters_of(text);
  if (characters.empty()) return {true, true, false};
  if (text.starts_with("---") || text.starts_with("...")) styles.plain = false;
  for (std::size_t i = 0; i < characters.size(); ++i) {
    const std::uint32_t point = characters[i].point;
    const std::uint32_t before = i > 0 ? characters[i - 1].point : 'x';
    if (has_indicator(characters, i) || is_break(point)) styles.plain = false;
    if (point == '\t' || (point == ' ' && is_break(before))) {
      styles.plain = false;
      styles.single_quoted = false;
    } else if (!is_printable(point) || (is_break(point) && before == ' ')) {
      styles = {false, false, false};
    }
  }
  const std::uint32_t first = characters.front().point;
  const std::uint32_t last = characters.back().point;
  if (first == ' ' || last == ' ') styles.plain = false;
  if (last == ' ') styles.literal = false;
  return styles;
}

void write_escape(std::string& out, std::uint32_t point) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  const auto write = [&](char letter, std::uint32_t count) {
    out += letter;
    while (count-- > 0) out += digits[(point >> (4 * count)) & 0xFU];
  };
  if (point <= 0xFF) {
    write('x', 2);
  } else if (point <= 0xFFFF) {
    write('u', 4);
  } else {
    write('U', 8);
  }
}

std::string double_quoted(std::string_view text) {
  struct Short {
    std::uint32_t point;
    char letter;
  };
  constexpr auto shorts = std::to_array<Short>({{0, '0'},
                                                {0x07, 'a'},
                                                {0x08, 'b'},
                                                {0x09, 't'},
                                                {0x0A, 'n'},
                                                {0x0B, 'v'},
                                                {0x0C, 'f'},
                                                {0x0D, 'r'},
                                                {0x1B, 'e'},
                                                {'"', '"'},
                                                {'\\', '\\'},
                                                {0x85, 'N'},
                                                {0x2028, 'L'},
                                                {0x2029, 'P'}});
  std::string out = "\"";
  for (const Character& character : characters_of(text)) {
    const std::uint32_t point = character.point;
    const auto* const known = std::find_if(
        shorts.begin(), shorts.end(), [point](const Short& entry) { return entry.point == point; });
    if (known != shorts.end()) {
      out += '\\';
      out += known->letter;
    } else if (!is_printable(point)) {
      out += '\\';
      write_escape(out, point);
    } else {
      out += character.bytes;
    }
  }
  return out + '"';
}

std::string single_quoted(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    out += c;
    if (c == '\'') out += '\'';
  }
  return out + '\'';
}

std::string literal(std::string_view text, std::size_t indent) {
  std::string out = "|";
  if (text.front() == ' ' || text.front() == '\n') out += '2';
  if (!text.ends_with('\n')) {
    out += '-';
  } else if (text == "\n" || text.ends_with("\n\n")) {
    out += '+';
  }
  const std::string margin(indent, ' ');
  std::string_view rest = text.ends_with('\n') ? text.substr(0, text.size() - 1) : text;
  for (const std::string& line : split(rest, '\n')) {
    out += '\n';
    if (!line.empty()) out += cat(margin, line);
  }
  return out;
}

// `indent` is that of the lines of a block.
std::string scalar(std::string_view written, std::size_t indent) {
  std::string text = valid_utf8(written);
  const Styles styles = styles_of(text);
  if (text.find('\n') != std::string_view::npos) {
    return styles.literal ? literal(text, indent) : double_quoted(text);
  }
  if (kind_of_plain(text) != ScalarKind::text || is_base60(text) || is_old_flag(text)) {
    return double_quoted(text);
  }
  if (styles.plain) return text;
  return styles.single_quoted ? single_quoted(text) : double_quoted(text);
}

void write(std::string& out, const Document& document, std::size_t indent);

// Keys that are long or have several lines stand behind a question mark, with
// the value on a line of its own.
bool is_simple_key(std::string_view key) {
  constexpr std::size_t longest = 128;
  return key.size() <= longest && key.find('\n') == std::string_view::npos;
}

void write_map(std::string& out, const Document& map, std::size_t indent, bool in_list) {
  bool first = in_list;
  for (const DocumentMember& member : map.members) {
    if (!first) out += std::string(indent, ' ');
    first = false;
    if (is_simple_key(member.key)) {
      out += cat(scalar(member.key, indent + 2), ":");
    } else {
      out += cat("? ", scalar(member.key, indent + 2), "\n", std::string(indent, ' '), ":");
    }
    write(out, member.value, indent + 2);
  }
}

void write_list(std::string& out, const Document& list, std::size_t indent) {
  for (const Document& item : list.items) {
    out += cat(std::string(indent, ' '), "-");
    if (item.kind == Document::Kind::map && !item.members.empty()) {
      out += ' ';
      write_map(out, item, indent + 2, true);
    } else {
      write(out, item, indent + 2);
    }
  }
}

// What stands after a key or a dash, with the end of the line.
void write(std::string& out, const Document& document, std::size_t indent) {
  switch (document.kind) {
    case Document::Kind::text:
      out += cat(" ", scalar(document.text, indent), "\n");
      return;
    case Document::Kind::number:
      out += cat(" ", document.number, "\n");
      return;
    case Document::Kind::list:
      out += document.items.empty() ? " []\n" : "\n";
      write_list(out, document, indent);
      return;
    case Document::Kind::map:
      out += document.members.empty() ? " {}\n" : "\n";
      write_map(out, document, indent, false);
      return;
  }
}

}  // namespace

std::string to_yaml(const Document& document) {
  if (document.members.empty()) return "{}\n";
  std::string out;
  write_map(out, document, 0, false);
  return out;
}

}  // namespace fuse
