#include "base/quote.h"

#include <array>
#include <cstdint>

#include "base/text.h"

namespace fuse {

namespace {

std::string hex_digits(std::uint32_t value, int digits) {
  constexpr std::string_view alphabet = "0123456789abcdef";
  std::string out(static_cast<std::size_t>(digits), '0');
  for (std::size_t i = out.size(); i-- > 0; value >>= 4U) out[i] = alphabet[value & 0xFU];
  return out;
}

std::string quoted_ascii(char c) {
  switch (c) {
    case '\a':
      return "\\a";
    case '\b':
      return "\\b";
    case '\f':
      return "\\f";
    case '\n':
      return "\\n";
    case '\r':
      return "\\r";
    case '\t':
      return "\\t";
    case '\v':
      return "\\v";
    case '"':
      return "\\\"";
    case '\\':
      return "\\\\";
    default:
      break;
  }
  if (c < ' ' || c == 0x7F) return cat("\\x", hex_digits(static_cast<unsigned char>(c), 2));
  return {c};
}

// The length of the UTF-8 sequence that `lead` begins; 1 when it begins none.
std::size_t sequence_length(unsigned char lead) {
  if (lead >= 0xF0 && lead <= 0xF4) return 4;
  if (lead >= 0xE0 && lead < 0xF0) return 3;
  if (lead >= 0xC2 && lead < 0xE0) return 2;
  return 1;
}

std::uint32_t code_point(std::string_view sequence) {
  auto value = static_cast<std::uint32_t>(static_cast<unsigned char>(sequence[0]));
  value &= 0xFFU >> (sequence.size() + 1);
  for (const char c : sequence.substr(1)) {
    value = (value << 6U) | (static_cast<unsigned char>(c) & 0x3FU);
  }
  return value;
}

// Blanks other than ' ', joiners, marks of direction and other things that
// would not show, or would show as something else.
bool is_invisible(std::uint32_t point) {
  struct Range {
    std::uint32_t first;
    std::uint32_t last;
  };
  constexpr std::array<Range, 11> ranges{{{0x80, 0xA0},
                                          {0xAD, 0xAD},
                                          {0x61C, 0x61C},
                                          {0x1680, 0x1680},
                                          {0x180E, 0x180E},
                                          {0x2000, 0x200F},
                                          {0x2028, 0x202F},
                                          {0x205F, 0x206F},
                                          {0x3000, 0x3000},
                                          {0xE000, 0xF8FF},
                                          {0xFEFF, 0xFEFF}}};
  for (const Range& range : ranges) {
    if (point >= range.first && point <= range.last) return true;
  }
  return (point & 0xFFFEU) == 0xFFFEU || point >= 0xE0000;
}

}  // namespace

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    if (lead < 0x80) {
      out += quoted_ascii(text[i]);
      ++i;
      continue;
    }
    const std::string_view sequence = text.substr(i, sequence_length(lead));
    if (sequence.size() == 1 || valid_utf8(sequence) != sequence) {
      out += cat("\\x", hex_digits(lead, 2));
      ++i;
      continue;
    }
    const std::uint32_t point = code_point(sequence);
    if (!is_invisible(point)) {
      out += sequence;
    } else if (point > 0xFFFF) {
      out += cat("\\U", hex_digits(point, 8));
    } else {
      out += cat("\\u", hex_digits(point, 4));
    }
    i += sequence.size();
  }
  return out + '"';
}

}  // namespace fuse
