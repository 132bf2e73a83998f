#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fuse {

// What `nvidia-smi --query-...=FIELDS --format=csv` prints.  Columns are found by
// the name in the header, never by position; a unit in the header ("[MiB]") or
// behind a value is left away.
struct SmiCsv {
  std::vector<std::string> columns{};            // without units
  std::vector<std::vector<std::string>> rows{};  // "" where there is no value
  // Sentences before or instead of the table: a card that fell off the bus, a
  // field that the driver does not know.
  std::vector<std::string> remarks{};

  // The cell of that row in that column; "" also when there is no such column.
  [[nodiscard]] std::string cell(std::size_t row, std::string_view column) const;
};

// Reads the output; nothing in it is refused, what is no row is a remark.
// `columns` is for output without a header (noheader).
SmiCsv parse_smi_csv(std::string_view text, std::vector<std::string> columns = {});

// Whether nvidia-smi says in one of its ways that there is no value: "[N/A]",
// "N/A", "", "[Not Supported]", "[Unknown Error]", "ERR!", or any other sentence
// in brackets.
bool is_no_value(std::string_view cell);

// What nvidia-smi tells about a card.
struct SmiGpu {
  std::int32_t index = 0;  // of this boot; for talking to nvidia-smi, never kept
  std::string address{};   // 0000:41:00.0
  std::string uuid{};
  std::string model{};
  std::int64_t memory_mb = 0;  // 0: not told
  std::string driver_version{};
  std::string compute_cap{};
  std::string mig_current{};  // "Enabled", "Disabled"; empty: the card has no MIG
  std::string mig_pending{};
  std::string complaint{};  // "[GPU requires reset]": present, not to be used
};

// Rows without an address are left out.
std::vector<SmiGpu> smi_gpus(const SmiCsv& csv);

}  // namespace fuse
