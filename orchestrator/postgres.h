#pragma once

#include <memory>
#include <string>

#include "orchestrator/sql.h"

namespace fuse {

// A connection to PostgreSQL, by a URI or by key=value words as libpq has them
// (postgresql://USER:PASSWORD@HOST/DATABASE?sslmode=require).  Transactions are
// READ COMMITTED; a commit is answered when it is on disk.  unavailable with
// details.reason "store" while the server cannot be reached, "commit" when the
// connection broke while a transaction was committed, so that nobody knows.
Result<std::unique_ptr<SqlConnection>> open_postgres(const std::string& uri);

// Where the server is, without user and password: "db.example.com:5432/fuse".
// invalid_argument for a text that is no address of a database.
Result<std::string> postgres_place(const std::string& uri);

}  // namespace fuse
