#include "base/clock.h"

#include <array>
#include <cstdio>
#include <thread>

#include "base/text.h"

namespace fuse {

WallTime SystemClock::wall() const {
  return std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now());
}

SteadyTime SystemClock::steady() const {
  return std::chrono::steady_clock::now();
}

void SystemClock::sleep(std::chrono::nanoseconds time) {
  std::this_thread::sleep_for(time);
}

std::string to_rfc3339(WallTime time) {
  const auto day = std::chrono::floor<std::chrono::days>(time);
  const std::chrono::year_month_day date(day);
  const std::chrono::hh_mm_ss clock(std::chrono::floor<std::chrono::seconds>(time - day));
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "%04d-%02u-%02uT%02ld:%02ld:%02ld",
                static_cast<int>(date.year()), static_cast<unsigned>(date.month()),
                static_cast<unsigned>(date.day()), static_cast<long>(clock.hours().count()),
                static_cast<long>(clock.minutes().count()),
                static_cast<long>(clock.seconds().count()));
  std::string out(text.data());
  const auto nanos = (time - std::chrono::floor<std::chrono::seconds>(time)).count();
  if (nanos != 0) {
    std::snprintf(text.data(), text.size(), ".%09ld", static_cast<long>(nanos));
    std::string fraction(text.data());
    fraction.erase(fraction.find_last_not_of('0') + 1);
    out += fraction;
  }
  return out + "Z";
}

namespace {

// Takes `digits` decimal digits off the front of `text`.
std::optional<int> take_digits(std::string_view& text, std::size_t digits) {
  if (text.size() < digits) return std::nullopt;
  int value = 0;
  for (std::size_t i = 0; i < digits; ++i) {
    if (text[i] < '0' || text[i] > '9') return std::nullopt;
    value = value * 10 + (text[i] - '0');
  }
  text.remove_prefix(digits);
  return value;
}

bool take(std::string_view& text, char c) {
  if (!text.starts_with(c)) return false;
  text.remove_prefix(1);
  return true;
}

// ".123" as nanoseconds; 0 when there is no fraction, nullopt when it is
// malformed.
std::optional<std::chrono::nanoseconds> take_fraction(std::string_view& text) {
  std::int64_t nanos = 0;
  if (!take(text, '.')) return std::chrono::nanoseconds(0);
  std::int64_t scale = 100'000'000;
  std::size_t digits = 0;
  for (; digits < text.size() && text[digits] >= '0' && text[digits] <= '9'; ++digits) {
    nanos += (text[digits] - '0') * scale;
    scale /= 10;
  }
  if (digits == 0 || digits > 9) return std::nullopt;
  text.remove_prefix(digits);
  return std::chrono::nanoseconds(nanos);
}

// "Z" or "+02:00", and nothing after it.
std::optional<std::chrono::minutes> take_offset(std::string_view text) {
  if (text == "Z" || text == "z") return std::chrono::minutes(0);
  const int sign = text.starts_with('-') ? -1 : 1;
  if (!take(text, '+') && !take(text, '-')) return std::nullopt;
  const auto hours = take_digits(text, 2);
  const bool colon = take(text, ':');
  const auto minutes = take_digits(text, 2);
  if (!hours || !colon || !minutes || !text.empty() || *minutes > 59) return std::nullopt;
  return std::chrono::minutes(sign * (*hours * 60 + *minutes));
}

}  // namespace

std::optional<WallTime> parse_rfc3339(std::string_view text) {
  std::array<int, 6> field{};
  constexpr std::array<char, 6> ends = {'-', '-', 'T', ':', ':', '\0'};
  for (std::size_t i = 0; i < field.size(); ++i) {
    const auto value = take_digits(text, i == 0 ? 4 : 2);
    if (!value || (ends[i] != '\0' && !take(text, ends[i]))) return std::nullopt;
    field[i] = *value;
  }
  const std::chrono::year_month_day date{std::chrono::year{field[0]},
                                         std::chrono::month{static_cast<unsigned>(field[1])},
                                         std::chrono::day{static_cast<unsigned>(field[2])}};
  if (!date.ok() || field[3] > 23 || field[4] > 59 || field[5] > 59) return std::nullopt;
  // A WallTime counts nanoseconds in 64 bits, which end in 1677 and 2262.
  constexpr int first_year = 1678;
  constexpr int last_year = 2261;
  if (field[0] < first_year || field[0] > last_year) return std::nullopt;
  const auto fraction = take_fraction(text);
  if (!fraction) return std::nullopt;
  const auto offset = take_offset(text);
  if (!offset) return std::nullopt;
  return std::chrono::sys_days(date) + std::chrono::hours(field[3]) +
         std::chrono::minutes(field[4]) + std::chrono::seconds(field[5]) + *fraction - *offset;
}

}  // namespace fuse
