#include "fusefile/yaml_breaks.h"

#include <algorithm>

#include "base/text.h"

namespace fuse {

namespace {

void drop(std::string_view& text, std::size_t count) {
  text.remove_prefix(std::min(count, text.size()));
}

void skip_blanks_and_comments(std::string_view& text) {
  while (true) {
    drop(text, text.find_first_not_of(" \t\n"));
    if (!text.starts_with('#')) return;
    drop(text, text.find('\n'));
  }
}

// Where the closing quote of `scalar` stands, which begins with one.
std::size_t closing_quote(std::string_view scalar) {
  const bool escapes = scalar.front() == '"';
  std::size_t at = 1;
  while (true) {
    at = scalar.find_first_of(escapes ? "\"\\" : "'", at);
    if (at == std::string_view::npos) return at;
    const bool doubled = !escapes && scalar.substr(at + 1).starts_with('\'');
    if (scalar[at] != '\\' && !doubled) return at;
    at += 2;
  }
}

}  // namespace

std::string_view scalar_at(std::string_view text, std::size_t offset) {
  drop(text, offset);
  while (text.starts_with('!') || text.starts_with('&')) {
    drop(text, text.find_first_of(" \t\n"));
    skip_blanks_and_comments(text);
  }
  return text;
}

std::optional<std::string> quoted_with_end(std::string_view scalar) {
  if (!scalar.starts_with('"') && !scalar.starts_with('\'')) return std::nullopt;
  const std::size_t end = closing_quote(scalar);
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view token = scalar.substr(0, end);
  const std::string_view tail = token.substr(token.find_last_not_of(" \t\n") + 1);
  // One break is a blank when it is folded.
  if (std::count(tail.begin(), tail.end(), '\n') < 2) return std::nullopt;
  return cat(token, "x", scalar.front());
}

std::optional<std::size_t> kept_breaks(std::string_view scalar, int parent_indent) {
  if (!scalar.starts_with('>')) return std::nullopt;
  const std::string_view header = scalar.substr(0, scalar.find_first_of(" \t\n"));
  if (header.find('+') == std::string_view::npos) return std::nullopt;
  std::optional<int> indent;
  if (const std::size_t digit = header.find_first_of("123456789");
      digit != std::string_view::npos) {
    indent = std::max(parent_indent, 0) + (header[digit] - '0');
  }
  bool has_text = false;
  std::size_t blank_lines = 0;
  drop(scalar, scalar.find('\n'));
  while (scalar.size() > 1) {
    drop(scalar, 1);  // the end of the line before
    const std::string_view line = scalar.substr(0, scalar.find('\n'));
    drop(scalar, line.size());
    const auto width = static_cast<int>(std::min(line.find_first_not_of(' '), line.size()));
    const bool is_spaces = static_cast<std::size_t>(width) == line.size();
    if (is_spaces && (!indent || width <= *indent)) {
      if (!scalar.empty()) ++blank_lines;
      continue;
    }
    if (!indent) indent = std::max(width, parent_indent + 1);
    if (width < *indent) break;
    has_text = true;
    blank_lines = 0;
  }
  if (!has_text || blank_lines == 0) return std::nullopt;
  return blank_lines + 1;
}

}  // namespace fuse
