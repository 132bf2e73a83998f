#include "orchestrator/sql.h"

#include <algorithm>
#include <cassert>

namespace fuse {

const SqlValue& SqlRow::at(std::string_view column) const {
  const auto found = std::find(names_->begin(), names_->end(), column);
  assert(found != names_->end() && "the query has no such column");
  return values_[static_cast<std::size_t>(found - names_->begin())];
}

bool SqlRow::null(std::string_view column) const {
  return std::holds_alternative<std::monostate>(at(column));
}

std::int64_t SqlRow::integer(std::string_view column) const {
  const auto* const value = std::get_if<std::int64_t>(&at(column));
  return value == nullptr ? 0 : *value;
}

std::string SqlRow::text(std::string_view column) const {
  const auto* const value = std::get_if<std::string>(&at(column));
  return value == nullptr ? std::string() : *value;
}

std::string SqlRow::bytes(std::string_view column) const {
  const auto* const value = std::get_if<SqlBlob>(&at(column));
  return value == nullptr ? std::string() : value->bytes;
}

Result<SqlTransaction> SqlTransaction::begin(SqlConnection& sql) {
  if (auto begun = sql.begin(); !begun) return begun.error();
  return SqlTransaction(sql);
}

// A commit that fails leaves the transaction open, so it is undone as usual.
Result<void> SqlTransaction::commit() {
  if (auto done = open_->commit(); !done) return done;
  (void)open_.release();
  return {};
}

}  // namespace fuse
