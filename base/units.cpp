#include "base/units.h"

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>

#include "base/quote.h"
#include "base/text.h"

namespace fuse {

namespace {

constexpr std::uint64_t most_nanoseconds = std::uint64_t{1} << 63U;  // of a negative duration

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::string_view take_digits(std::string_view& text) {
  std::size_t length = 0;
  while (length < text.size() && is_digit(text[length])) ++length;
  const std::string_view digits = text.substr(0, length);
  text.remove_prefix(length);
  return digits;
}

std::string_view trim_blanks(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// How many MiB a size's unit is.
std::optional<double> mib_of_unit(std::string_view unit) {
  const std::string name = lowercase(unit);
  for (const std::string_view tail : {"", "b", "ib"}) {
    if (name == cat("m", tail)) return 1.0;
    if (name == cat("g", tail)) return 1024.0;
    if (name == cat("t", tail)) return 1024.0 * 1024.0;
  }
  return std::nullopt;
}

struct WrittenSize {
  double number = 0;
  double unit_mib = 0;
};

std::optional<WrittenSize> read_size(std::string_view text) {
  std::string_view rest = trim_blanks(text);
  const std::string_view all = rest;
  if (take_digits(rest).empty()) return std::nullopt;
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    if (take_digits(rest).empty()) return std::nullopt;
  }
  const std::string_view number = all.substr(0, all.size() - rest.size());
  const auto unit = mib_of_unit(trim_blanks(rest));
  if (!unit) return std::nullopt;
  WrittenSize size{0, *unit};
  const auto read = std::from_chars(number.data(), number.data() + number.size(), size.number);
  if (read.ec == std::errc::result_out_of_range) {
    const bool huge = number.find_first_of("123456789") < number.find('.');
    size.number = huge ? HUGE_VAL : std::numeric_limits<double>::denorm_min();
  }
  return size;
}

struct DurationUnit {
  std::string_view name;
  std::uint64_t nanoseconds;
};
constexpr std::array<DurationUnit, 8> duration_units{{{"ns", 1},
                                                      {"us", 1'000},
                                                      {"\xC2\xB5s", 1'000},  // micro sign
                                                      {"\xCE\xBCs", 1'000},  // Greek mu
                                                      {"ms", 1'000'000},
                                                      {"s", 1'000'000'000},
                                                      {"m", 60'000'000'000},
                                                      {"h", 3'600'000'000'000}}};

// Quotes as the duration texts do: every byte beyond ASCII as \x00.
std::string quoted_ascii_only(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += cat("\\", std::string_view(&c, 1));
    } else if (byte < ' ' || byte >= 0x80) {
      out += cat("\\x", hex_encode(std::string_view(&c, 1)));
    } else {
      out += c;
    }
  }
  return out + '"';
}

Error bad_duration(std::string_view what, std::string_view text) {
  return {ErrorCode::invalid_argument, cat("time: ", what, " ", quoted_ascii_only(text))};
}

// A whole number of at most 2^63; nothing beyond.
std::optional<std::uint64_t> whole_part(std::string_view digits) {
  std::uint64_t value = 0;
  for (const char c : digits) {
    if (value > most_nanoseconds / 10) return std::nullopt;
    value = value * 10 + static_cast<std::uint64_t>(c - '0');
    if (value > most_nanoseconds) return std::nullopt;
  }
  return value;
}

// The nanoseconds of a fraction of `unit`; digits that no longer fit are cut.
std::uint64_t fraction_part(std::string_view digits, std::uint64_t unit) {
  std::uint64_t value = 0;
  double scale = 1;
  for (const char c : digits) {
    if (value > (most_nanoseconds - 1) / 10) break;
    const std::uint64_t next = value * 10 + static_cast<std::uint64_t>(c - '0');
    if (next > most_nanoseconds) break;
    value = next;
    scale *= 10;
  }
  return static_cast<std::uint64_t>(static_cast<double>(value) *
                                    (static_cast<double>(unit) / scale));
}

// Takes one number with its unit off `rest`.
Result<std::uint64_t> take_term(std::string_view& rest, std::string_view all) {
  const std::string_view whole = take_digits(rest);
  std::string_view fraction;
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    fraction = take_digits(rest);
  }
  if (whole.empty() && fraction.empty()) return bad_duration("invalid duration", all);
  const auto count = whole_part(whole);
  if (!count) return bad_duration("invalid duration", all);

  std::size_t length = 0;
  while (length < rest.size() && rest[length] != '.' && !is_digit(rest[length])) ++length;
  const std::string_view name = rest.substr(0, length);
  rest.remove_prefix(length);
  if (name.empty()) return bad_duration("missing unit in duration", all);
  for (const DurationUnit& unit : duration_units) {
    if (unit.name != name) continue;
    if (*count > most_nanoseconds / unit.nanoseconds) return bad_duration("invalid duration", all);
    const std::uint64_t total =
        *count * unit.nanoseconds + fraction_part(fraction, unit.nanoseconds);
    if (total > most_nanoseconds) return bad_duration("invalid duration", all);
    return total;
  }
  return bad_duration(cat("unknown unit ", quoted_ascii_only(name), " in duration"), all);
}

// `value` / 10^`digits` without trailing zeros: 1500 and 3 are "1.5".
std::string decimal(std::uint64_t value, int digits) {
  std::string fraction;
  for (int i = 0; i < digits; ++i, value /= 10) {
    const char digit = static_cast<char>('0' + value % 10);
    if (!fraction.empty() || digit != '0') fraction.insert(fraction.begin(), digit);
  }
  return fraction.empty() ? cat(value) : cat(value, ".", fraction);
}

// With one digit after the point, rounded down.
std::string tenths(std::uint64_t value, std::uint64_t unit) {
  return cat(value / unit, ".", value % unit * 10 / unit);
}

std::uint64_t magnitude(std::chrono::nanoseconds duration) {
  const auto count = static_cast<std::uint64_t>(duration.count());
  return duration.count() < 0 ? 0 - count : count;
}

}  // namespace

Result<std::int32_t> parse_size_mib(std::string_view text) {
  const auto fail = [text](std::string_view what) {
    return Error{ErrorCode::invalid_argument, cat("invalid size ", in_quotes(text), what)};
  };
  const auto size = read_size(text);
  if (!size) return fail(" (expected a number and a unit, e.g. \"512MB\", \"2GB\", \"1.5GiB\")");
  const double mib = size->number * size->unit_mib;
  if (mib > std::numeric_limits<std::int32_t>::max()) return fail(": value too large");
  if (mib != std::floor(mib)) return fail(": must be a whole number of MiB");
  return static_cast<std::int32_t>(mib);
}

Result<std::chrono::nanoseconds> parse_duration(std::string_view text) {
  std::string_view rest = text;
  const bool negative = !rest.empty() && rest.front() == '-';
  if (negative || (!rest.empty() && rest.front() == '+')) rest.remove_prefix(1);
  if (rest == "0") return std::chrono::nanoseconds(0);
  if (rest.empty()) return bad_duration("invalid duration", text);
  std::uint64_t total = 0;
  while (!rest.empty()) {
    const auto term = take_term(rest, text);
    if (!term) return term.error();
    total += *term;
    if (total > most_nanoseconds) return bad_duration("invalid duration", text);
  }
  if (negative) return std::chrono::nanoseconds(static_cast<std::int64_t>(0 - total));
  if (total == most_nanoseconds) return bad_duration("invalid duration", text);
  return std::chrono::nanoseconds(static_cast<std::int64_t>(total));
}

std::string to_string(std::chrono::nanoseconds duration) {
  const std::uint64_t total = magnitude(duration);
  const std::string_view sign = duration.count() < 0 ? "-" : "";
  if (total == 0) return "0s";
  if (total < 1'000) return cat(sign, total, "ns");
  if (total < 1'000'000) return cat(sign, decimal(total, 3), "\xC2\xB5s");
  if (total < 1'000'000'000) return cat(sign, decimal(total, 6), "ms");
  const std::uint64_t minutes = total / 60'000'000'000;
  const std::string seconds = cat(decimal(total % 60'000'000'000, 9), "s");
  if (minutes == 0) return cat(sign, seconds);
  if (minutes < 60) return cat(sign, minutes, "m", seconds);
  return cat(sign, minutes / 60, "h", minutes % 60, "m", seconds);
}

std::string human_duration(std::chrono::nanoseconds duration) {
  constexpr std::uint64_t second = 1'000'000'000;
  const std::uint64_t total = magnitude(duration);
  const std::uint64_t seconds = total / second;
  const std::string_view sign = duration.count() < 0 ? "-" : "";
  if (total < second) return cat(sign, total / 1'000'000, " ms");
  if (seconds < 60) return cat(sign, tenths(total, second), " s");
  if (seconds < 3600) return cat(sign, seconds / 60, " m ", seconds % 60, " s");
  const std::uint64_t hours = seconds / 3600;
  if (hours < 24) return cat(sign, hours, " h ", seconds % 3600 / 60, " m");
  return cat(sign, hours / 24, " d ", hours % 24, " h");
}

std::string human_bytes(std::uint64_t bytes) {
  constexpr std::array<std::string_view, 5> names{" KiB", " MiB", " GiB", " TiB", " PiB"};
  if (bytes < 1024) return cat(bytes, " B");
  std::size_t name = 0;
  std::uint64_t unit = 1024;
  while (name + 1 < names.size() && bytes / unit >= 1024) {
    unit *= 1024;
    ++name;
  }
  if (bytes % unit == 0) return cat(bytes / unit, names[name]);
  // In 1024ths, so that nothing overflows.
  const std::uint64_t parts = bytes / (unit / 1024);
  return cat(tenths(parts, 1024), names[name]);
}

}  // namespace fuse
