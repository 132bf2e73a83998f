#include "cmd/output.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "base/units.h"

namespace fuse::cmd {

namespace {

constexpr std::string_view between_columns = "   ";

std::vector<std::size_t> widths_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
  }
  return widths;
}

std::string line_of(const std::vector<std::string>& row, const std::vector<std::size_t>& widths) {
  std::string line;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (i > 0) line += between_columns;
    line += padded(row[i], widths[i]);
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

}  // namespace

void Table::print(std::ostream& out, bool bold_head) const {
  const auto widths = widths_of(rows_);
  for (std::size_t i = 0; i < rows_.size(); ++i) {
    const std::string line = line_of(rows_[i], widths);
    if (i == 0 && bold_head) {
      out << "\x1b[1m" << line << "\x1b[0m\n";
    } else {
      out << line << '\n';
    }
  }
}

void print_json(std::ostream& out, const nlohmann::ordered_json& value) {
  out << value.dump(2, ' ', false, nlohmann::ordered_json::error_handler_t::replace) << '\n';
}

std::size_t width_of(std::string_view text) {
  // Every byte but the continuation bytes of UTF-8 begins a character.
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; }));
}

std::string padded(std::string_view text, std::size_t width) {
  std::string out(text);
  const std::size_t have = width_of(text);
  if (have < width) out.append(width - have, ' ');
  return out;
}

std::string age_of(std::string_view rfc3339, WallTime now) {
  const auto then = parse_rfc3339(rfc3339);
  if (!then) return "-";
  const auto age = std::chrono::floor<std::chrono::seconds>(now - *then);
  return human_duration(std::max(age, std::chrono::seconds(0)));
}

std::string printable(std::string_view text) {
  std::string out = valid_utf8(text);
  std::ranges::replace_if(out, is_control, ' ');
  return out;
}

std::string or_dash(std::string_view text) {
  return text.empty() ? "-" : printable(text);
}

}  // namespace fuse::cmd
