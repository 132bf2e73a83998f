#include "base/text.h"

#include <algorithm>
#include <array>
#include <charconv>

namespace fuse {

namespace {

constexpr std::string_view base64_alphabet =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

char to_lower(char c) {
  return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
}

// Well-formed UTF-8: the first bytes of a sequence, its length, and the limits of
// the second byte, which keep out overlong forms, surrogates and what lies
// beyond Unicode.
struct Utf8Range {
  unsigned char first;
  unsigned char last;
  std::size_t length;
  unsigned char low;
  unsigned char high;
};
constexpr std::array<Utf8Range, 9> utf8_ranges = {{{0x00, 0x7F, 1, 0x00, 0x00},
                                                   {0xC2, 0xDF, 2, 0x80, 0xBF},
                                                   {0xE0, 0xE0, 3, 0xA0, 0xBF},
                                                   {0xE1, 0xEC, 3, 0x80, 0xBF},
                                                   {0xED, 0xED, 3, 0x80, 0x9F},
                                                   {0xEE, 0xEF, 3, 0x80, 0xBF},
                                                   {0xF0, 0xF0, 4, 0x90, 0xBF},
                                                   {0xF1, 0xF3, 4, 0x80, 0xBF},
                                                   {0xF4, 0xF4, 4, 0x80, 0x8F}}};

// The length of the valid UTF-8 sequence at the start of `text`, or 0.
std::size_t utf8_sequence(std::string_view text) {
  const auto within = [&text](std::size_t i, unsigned char low, unsigned char high) {
    const auto byte = static_cast<unsigned char>(text[i]);
    return byte >= low && byte <= high;
  };
  const auto* const range = std::ranges::find_if(
      utf8_ranges, [&within](const Utf8Range& r) { return within(0, r.first, r.last); });
  if (range == utf8_ranges.end() || text.size() < range->length) return 0;
  if (range->length > 1 && !within(1, range->low, range->high)) return 0;
  for (std::size_t i = 2; i < range->length; ++i) {
    if (!within(i, 0x80, 0xBF)) return 0;
  }
  return range->length;
}

}  // namespace

std::string join(std::span<const std::string> parts, std::string_view between) {
  std::string out;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (i > 0) out += between;
    out += parts[i];
  }
  return out;
}

std::vector<std::string> split(std::string_view text, char at) {
  std::vector<std::string> parts;
  std::size_t begin = 0;
  while (true) {
    const std::size_t end = text.find(at, begin);
    parts.emplace_back(text.substr(begin, end - begin));
    if (end == std::string_view::npos) return parts;
    begin = end + 1;
  }
}

std::string_view trim(std::string_view text) {
  constexpr std::string_view blanks = " \t\r\n";
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

std::string lowercase(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), to_lower);
  return out;
}

bool contains_ignoring_case(std::string_view text, std::string_view part) {
  return lowercase(text).find(lowercase(part)) != std::string::npos;
}

bool equal_ignoring_case(std::string_view a, std::string_view b) {
  return std::ranges::equal(a, b, {}, to_lower, to_lower);
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  std::int64_t value = 0;
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, value);
  if (failure != std::errc() || stop != end) return std::nullopt;
  return value;
}

std::string shell_quote(std::string_view text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + "'";
}

bool is_control(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7F;
}

std::string valid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (true) {
    // Most of a text is ASCII, and goes at once.
    const auto* const other =
        std::ranges::find_if(text, [](char c) { return static_cast<unsigned char>(c) >= 0x80; });
    const auto plain = static_cast<std::size_t>(other - text.begin());
    out += text.substr(0, plain);
    text.remove_prefix(plain);
    if (text.empty()) return out;
    const std::size_t length = utf8_sequence(text);
    if (length == 0) {
      out += "\xEF\xBF\xBD";
      text.remove_prefix(1);
    } else {
      out += text.substr(0, length);
      text.remove_prefix(length);
    }
  }
}

std::string base64_encode(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::string_view group = bytes.substr(i, 3);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      bits = (bits << 8U) | (k < group.size() ? static_cast<unsigned char>(group[k]) : 0U);
    }
    for (std::size_t k = 0; k < 4; ++k) {
      out += k <= group.size() ? base64_alphabet[(bits >> (18 - 6 * k)) & 63U] : '=';
    }
  }
  return out;
}

std::optional<std::string> base64_decode(std::string_view text) {
  static constexpr auto values = [] {
    std::array<std::int8_t, 256> table{};
    table.fill(-1);
    for (std::size_t i = 0; i < base64_alphabet.size(); ++i) {
      table[static_cast<unsigned char>(base64_alphabet[i])] = static_cast<std::int8_t>(i);
    }
    return table;
  }();
  if (text.size() % 4 != 0) return std::nullopt;
  std::size_t padding = 0;
  while (padding < 2 && padding < text.size() && text[text.size() - 1 - padding] == '=') ++padding;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool pad = i >= text.size() - padding;
    const std::int8_t value = pad ? std::int8_t{0} : values[static_cast<unsigned char>(text[i])];
    if (value < 0) return std::nullopt;
    bits = (bits << 6U) | static_cast<std::uint32_t>(value);
    if (i % 4 == 3) {
      out += static_cast<char>((bits >> 16U) & 255U);
      out += static_cast<char>((bits >> 8U) & 255U);
      out += static_cast<char>(bits & 255U);
      bits = 0;
    }
  }
  out.resize(out.size() - padding);
  return out;
}

std::optional<std::string> hex_decode(std::string_view text) {
  if (text.size() % 2 != 0) return std::nullopt;
  std::string out;
  for (std::size_t at = 0; at < text.size(); at += 2) {
    unsigned value = 0;
    const auto [end, problem] = std::from_chars(text.data() + at, text.data() + at + 2, value, 16);
    if (problem != std::errc() || end != text.data() + at + 2) return std::nullopt;
    out += static_cast<char>(static_cast<unsigned char>(value));
  }
  return out;
}

std::string hex_encode(std::string_view bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string out;
  out.reserve(bytes.size() * 2);
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += digits[byte >> 4U];
    out += digits[byte & 15U];
  }
  return out;
}

}  // namespace fuse
