#pragma once

#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace fuse {

namespace text_detail {
inline void append(std::string& out, std::string_view part) {
  out += part;
}
inline void append(std::string& out, char part) {
  out += part;
}
template <class N>
requires(std::integral<N> && !std::same_as<N, char> &&
         !std::same_as<N, bool>) void append(std::string& out, N part) {
  out += std::to_string(part);
}
}  // namespace text_detail

// The parts one after another: strings, characters and whole numbers.
template <class... Parts>
std::string cat(const Parts&... parts) {
  std::string out;
  (text_detail::append(out, parts), ...);
  return out;
}

std::string join(std::span<const std::string> parts, std::string_view between);
// split("a,b,", ',') is {"a", "b", ""}; split("", ',') is {""}.
std::vector<std::string> split(std::string_view text, char at);
// Without leading and trailing blanks, tabs, carriage returns and newlines.
std::string_view trim(std::string_view text);
std::string lowercase(std::string_view text);  // ASCII only
bool contains_ignoring_case(std::string_view text, std::string_view part);
bool equal_ignoring_case(std::string_view a, std::string_view b);

// A whole decimal number with an optional minus sign and nothing around it.
std::optional<std::int64_t> parse_int(std::string_view text);

// `text` for a POSIX shell: 'text' with each ' written as '\''.
std::string shell_quote(std::string_view text);

// Of ASCII: what a terminal would obey rather than show, also tab and newline.
bool is_control(char c);

// `text` with every invalid UTF-8 byte replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

// RFC 4648 base64 with padding.  Decoding refuses anything else, also newlines.
std::string base64_encode(std::string_view bytes);
std::optional<std::string> base64_decode(std::string_view text);

std::string hex_encode(std::string_view bytes);  // lower case
// Digits in any case; nothing for anything else.
std::optional<std::string> hex_decode(std::string_view text);

}  // namespace fuse
