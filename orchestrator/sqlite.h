#pragma once

#include <memory>

#include "base/host.h"
#include "orchestrator/sql.h"

namespace fuse {

// A SQLite database: WAL, foreign keys, every commit synced, transactions that
// take the write lock at once and wait up to ten seconds for it.  The file is
// made 0600 when it is missing; an empty path is a database in memory.
Result<std::unique_ptr<SqlConnection>> open_sqlite(const fs::path& file);

}  // namespace fuse
