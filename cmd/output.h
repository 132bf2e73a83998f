#pragma once

#include <iosfwd>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace fuse::cmd {

// Rows under a head, each column as wide as its widest cell.
class Table {
 public:
  explicit Table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  // `bold_head` sends escape sequences.
  void print(std::ostream& out, bool bold_head) const;

 private:
  std::vector<std::vector<std::string>> rows_;
};

// One document: two blanks of indent, nothing escaped that need not be.
void print_json(std::ostream& out, const nlohmann::ordered_json& value);

// The columns that `text` takes: its characters, when it is UTF-8.
std::size_t width_of(std::string_view text);
// `text` with blanks up to `width`.
std::string padded(std::string_view text, std::size_t width);

// "4 m" for a time on the wire that was four minutes ago; "-" when there is none.
std::string age_of(std::string_view rfc3339, WallTime now);

// `text` without control characters, so that what a guest or a file wrote
// cannot move the cursor; line ends become blanks.
std::string printable(std::string_view text);
// The same for a cell of a table: "-" when there is nothing.
std::string or_dash(std::string_view text);

}  // namespace fuse::cmd
