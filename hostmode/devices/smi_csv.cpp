#include "hostmode/devices/smi_csv.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/text.h"
#include "hostmode/devices/pci_address.h"

namespace fuse {

namespace {

std::vector<std::string> cells_of(std::string_view line) {
  std::vector<std::string> cells;
  for (const std::string& cell : split(line, ',')) cells.emplace_back(trim(cell));
  return cells;
}

// "memory.total [MiB]" -> "memory.total".
std::string without_unit(std::string_view column) {
  return std::string(trim(column.substr(0, column.find('['))));
}

// Names of fields: letters, digits, dots and underscores.
bool is_header(const std::vector<std::string>& cells) {
  const auto named = [](const std::string& cell) {
    const std::string name = without_unit(cell);
    const auto fits = [](char c) {
      return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
             c == '.' || c == '_';
    };
    return !name.empty() && (name.front() < '0' || name.front() > '9') &&
           std::ranges::all_of(name, fits);
  };
  return cells.size() > 1 && std::ranges::all_of(cells, named);
}

// "81559 MiB" -> 81559.
std::int64_t number_of(const std::string& cell) {
  const auto number = parse_int(std::string_view(cell).substr(0, cell.find(' ')));
  return number.value_or(0);
}

bool needs_reset(std::string_view cell) {
  return contains_ignoring_case(cell, "requires reset") ||
         contains_ignoring_case(cell, "unknown error") || contains_ignoring_case(cell, "is lost");
}

}  // namespace

bool is_no_value(std::string_view cell) {
  const std::string_view value = trim(cell);
  const bool bracketed = value.starts_with('[') && value.ends_with(']');
  return value.empty() || value == "N/A" || value == "ERR!" || bracketed;
}

std::string SmiCsv::cell(std::size_t row, std::string_view column) const {
  const auto found = std::ranges::find(columns, column);
  const auto index = static_cast<std::size_t>(found - columns.begin());
  return row < rows.size() && index < rows[row].size() ? rows[row][index] : "";
}

SmiCsv parse_smi_csv(std::string_view text, std::vector<std::string> columns) {
  SmiCsv csv{.columns = std::move(columns)};
  for (const std::string& raw : split(text, '\n')) {
    const std::string_view line = trim(raw);
    if (line.empty()) continue;
    auto cells = cells_of(line);
    if (csv.columns.empty() && is_header(cells)) {
      for (const std::string& cell : cells) csv.columns.push_back(without_unit(cell));
    } else if (csv.columns.empty() || cells.size() != csv.columns.size()) {
      csv.remarks.emplace_back(line);
    } else {
      csv.rows.push_back(std::move(cells));
    }
  }
  return csv;
}

std::vector<SmiGpu> smi_gpus(const SmiCsv& csv) {
  std::vector<SmiGpu> gpus;
  for (std::size_t row = 0; row < csv.rows.size(); ++row) {
    const auto value = [&](std::string_view column) {
      std::string cell = csv.cell(row, column);
      return is_no_value(cell) ? "" : cell;
    };
    auto address = pci_address(csv.cell(row, "pci.bus_id"));
    if (!address) continue;
    const auto sick = std::ranges::find_if(csv.rows[row], needs_reset);
    const std::int64_t index = number_of(value("index"));
    gpus.push_back({.index = static_cast<std::int32_t>(std::clamp<std::int64_t>(
                        index, 0, std::numeric_limits<std::int32_t>::max())),
                    .address = *std::move(address),
                    .uuid = value("uuid"),
                    .model = value("name"),
                    .memory_mb = number_of(value("memory.total")),
                    .driver_version = value("driver_version"),
                    .compute_cap = value("compute_cap"),
                    .mig_current = value("mig.mode.current"),
                    .mig_pending = value("mig.mode.pending"),
                    .complaint = sick == csv.rows[row].end() ? "" : *sick});
  }
  return gpus;
}

}  // namespace fuse
