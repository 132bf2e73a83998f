#pragma once

#include <span>
#include <string_view>

#include "orchestrator/sql.h"

namespace fuse {

// What brings a database from the version before to `version`: statements that
// SQLite and PostgreSQL both understand, `{blob}` standing for the type of bytes,
// then what is not for SQL alone.
struct Migration {
  std::int64_t version = 0;
  std::span<const std::string_view> statements{};
  Result<void> (*fill)(SqlConnection& sql) = nullptr;
};

// This program's, from 1 without a gap.
std::span<const Migration> migrations();

// Brings the database up to the last of `steps` in one transaction.  An older
// one is copied first (labelled "v1" for version 1); a newer one is refused with
// conflict, naming both versions.
Result<void> migrate(SqlConnection& sql, std::span<const Migration> steps);

}  // namespace fuse
