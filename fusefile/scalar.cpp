#include "fusefile/scalar.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "base/text.h"

namespace fuse {

namespace {

constexpr std::string_view core_tag = "tag:yaml.org,2002:";

template <std::size_t N>
bool is_one_of(std::string_view text, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), text) != words.end();
}

constexpr std::array<std::string_view, 5> null_words{"", "~", "null", "Null", "NULL"};
constexpr std::array<std::string_view, 3> true_words{"true", "True", "TRUE"};
constexpr std::array<std::string_view, 3> false_words{"false", "False", "FALSE"};
constexpr std::array<std::string_view, 8> yes_words{"y",   "Y",  "yes", "Yes",
                                                    "YES", "on", "On",  "ON"};
constexpr std::array<std::string_view, 8> no_words{"n", "N", "no", "No", "NO", "off", "Off", "OFF"};
constexpr std::array<std::string_view, 9> infinite_words{
    ".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF", "-.inf", "-.Inf", "-.INF"};
constexpr std::array<std::string_view, 3> nan_words{".nan", ".NaN", ".NAN"};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// How many digits `text` begins with.
std::size_t digits_at(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  return length;
}

std::string without_underscores(std::string_view text) {
  std::string out(text);
  out.erase(std::remove(out.begin(), out.end(), '_'), out.end());
  return out;
}

// Takes the base's prefix off `digits`.
int take_base(std::string_view& digits) {
  if (digits.size() < 2 || digits[0] != '0') return 10;
  int base = 8;
  std::size_t prefix = 2;
  switch (digits[1]) {
    case 'x':
    case 'X':
      base = 16;
      break;
    case 'b':
    case 'B':
      base = 2;
      break;
    case 'o':
    case 'O':
      break;
    default:
      prefix = 1;
  }
  digits.remove_prefix(prefix);
  return base;
}

// [sign] digits [. digits] [e [sign] digits], with a digit on one side of the
// point at least.
bool is_decimal(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  const std::size_t whole = digits_at(text);
  text.remove_prefix(whole);
  std::size_t fraction = 0;
  if (!text.empty() && text.front() == '.') {
    text.remove_prefix(1);
    fraction = digits_at(text);
    text.remove_prefix(fraction);
  }
  if (whole + fraction == 0) return false;
  if (text.empty()) return true;
  if (text.front() != 'e' && text.front() != 'E') return false;
  text.remove_prefix(1);
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  return !text.empty() && digits_at(text) == text.size();
}

// YYYY-M-D, alone or followed by a time of day.
bool is_timestamp(std::string_view text) {
  if (digits_at(text) != 4 || text.size() < 8 || text[4] != '-') return false;
  text.remove_prefix(5);
  const std::size_t month = digits_at(text);
  if (month < 1 || month > 2 || text.size() <= month || text[month] != '-') return false;
  text.remove_prefix(month + 1);
  const std::size_t day = digits_at(text);
  if (day < 1 || day > 2) return false;
  text.remove_prefix(day);
  if (text.empty()) return true;
  const bool separated = text.front() == 'T' || text.front() == 't' || text.front() == ' ';
  const bool only_time = text.find_first_not_of("0123456789:.+-TtZz ") == std::string_view::npos;
  return separated && only_time && text.find(':') != std::string_view::npos;
}

ScalarKind kind_of_tag(std::string_view name, const YamlNode& scalar) {
  if (name == "null") return ScalarKind::null;
  if (name == "bool") return ScalarKind::boolean;
  if (name == "int") return ScalarKind::integer;
  if (name == "float") return ScalarKind::floating;
  if (name == "timestamp") return ScalarKind::timestamp;
  if (name == "merge") return scalar.text == "<<" ? ScalarKind::merge : ScalarKind::text;
  return ScalarKind::text;
}

}  // namespace

std::string_view short_tag(ScalarKind kind) {
  switch (kind) {
    case ScalarKind::null:
      return "!!null";
    case ScalarKind::boolean:
      return "!!bool";
    case ScalarKind::integer:
      return "!!int";
    case ScalarKind::floating:
      return "!!float";
    case ScalarKind::timestamp:
      return "!!timestamp";
    case ScalarKind::merge:
      return "!!merge";
    case ScalarKind::text:
      break;
  }
  return "!!str";
}

ScalarKind kind_of_plain(std::string_view text) {
  if (is_one_of(text, null_words)) return ScalarKind::null;
  if (is_one_of(text, true_words) || is_one_of(text, false_words)) return ScalarKind::boolean;
  if (text == "<<") return ScalarKind::merge;
  if (parse_yaml_integer(text)) return ScalarKind::integer;
  if (parse_yaml_float(text)) return ScalarKind::floating;
  if (is_timestamp(text)) return ScalarKind::timestamp;
  return ScalarKind::text;
}

ScalarKind kind_of(const YamlNode& scalar) {
  if (scalar.tag.starts_with(core_tag)) {
    return kind_of_tag(std::string_view(scalar.tag).substr(core_tag.size()), scalar);
  }
  if (scalar.quoted || !scalar.tag.empty()) return ScalarKind::text;
  return kind_of_plain(scalar.text);
}

std::optional<YamlInteger> parse_yaml_integer(std::string_view text) {
  if (text.empty() || (!is_digit(text[0]) && text[0] != '-' && text[0] != '+')) {
    return std::nullopt;
  }
  const std::string plain = without_underscores(text);
  std::string_view digits = plain;
  const bool negative = !digits.empty() && digits.front() == '-';
  if (negative || (!digits.empty() && digits.front() == '+')) digits.remove_prefix(1);
  const int base = take_base(digits);
  std::uint64_t magnitude = 0;
  const char* const end = digits.data() + digits.size();
  const auto read = std::from_chars(digits.data(), end, magnitude, base);
  if (digits.empty() || read.ptr != end || read.ec == std::errc::invalid_argument) {
    return std::nullopt;
  }
  constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max();
  if (read.ec == std::errc::result_out_of_range || magnitude > most) return YamlInteger{0, false};
  const auto value = static_cast<std::int64_t>(magnitude);
  return YamlInteger{negative ? -value : value, true};
}

std::optional<double> parse_yaml_float(std::string_view text) {
  if (is_one_of(text, infinite_words)) {
    const double infinity = std::numeric_limits<double>::infinity();
    return text.front() == '-' ? -infinity : infinity;
  }
  if (is_one_of(text, nan_words)) return std::numeric_limits<double>::quiet_NaN();
  const std::string plain = without_underscores(text);
  if (text.starts_with('_') || !is_decimal(plain)) return std::nullopt;
  std::string_view number = plain;
  if (number.front() == '+') number.remove_prefix(1);
  double value = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
  if (read.ec == std::errc::result_out_of_range) return std::numeric_limits<double>::infinity();
  return value;
}

std::optional<bool> parse_yaml_flag(std::string_view text, bool plain) {
  if (plain && is_one_of(text, true_words)) return true;
  if (plain && is_one_of(text, false_words)) return false;
  if (is_one_of(text, yes_words)) return true;
  if (is_one_of(text, no_words)) return false;
  return std::nullopt;
}

bool is_old_flag(std::string_view text) {
  return is_one_of(text, yes_words) || is_one_of(text, no_words);
}

bool is_base60(std::string_view text) {
  if (!text.empty() && (text.front() == '-' || text.front() == '+')) text.remove_prefix(1);
  if (text.empty() || !is_digit(text.front())) return false;
  std::size_t whole = 0;
  while (whole < text.size() && (is_digit(text[whole]) || text[whole] == '_')) ++whole;
  text.remove_prefix(whole);
  if (text.empty() || text.front() != ':') return false;
  while (!text.empty() && text.front() == ':') {
    text.remove_prefix(1);
    const std::size_t digits = digits_at(text);
    if (digits < 1 || digits > 2 || (digits == 2 && text.front() > '5')) return false;
    text.remove_prefix(digits);
  }
  if (text.empty()) return true;
  return text.front() == '.' && text.find_first_not_of("0123456789_", 1) == std::string_view::npos;
}

}  // namespace fuse
