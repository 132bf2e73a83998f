#include "orchestrator/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>

#include <cerrno>

#include "base/fd.h"
#include "base/text.h"

namespace fuse {

namespace {

constexpr int busy_milliseconds = 10'000;

struct CloseDatabase {
  void operator()(sqlite3* db) const { sqlite3_close_v2(db); }
};
struct FinalizeStatement {
  void operator()(sqlite3_stmt* statement) const { sqlite3_finalize(statement); }
};
using Database = std::unique_ptr<sqlite3, CloseDatabase>;
using Statement = std::unique_ptr<sqlite3_stmt, FinalizeStatement>;

Error sqlite_error(sqlite3* db, std::string_view what) {
  const int code = sqlite3_extended_errcode(db);
  Error error{ErrorCode::internal, cat("database: ", what, ": ", sqlite3_errmsg(db))};
  if (code == SQLITE_CONSTRAINT_UNIQUE || code == SQLITE_CONSTRAINT_PRIMARYKEY) {
    error.code = ErrorCode::conflict;
    error.details["reason"] = "unique";
  } else if ((code & 0xff) == SQLITE_BUSY || (code & 0xff) == SQLITE_LOCKED) {
    error.code = ErrorCode::unavailable;
    error.details["reason"] = "busy";
  }
  return error;
}

int bind_value(sqlite3_stmt* statement, int index, const SqlValue& value) {
  if (const auto* number = std::get_if<std::int64_t>(&value)) {
    return sqlite3_bind_int64(statement, index, *number);
  }
  if (const auto* text = std::get_if<std::string>(&value)) {
    return sqlite3_bind_text64(statement, index, text->data(), text->size(), SQLITE_TRANSIENT,
                               SQLITE_UTF8);
  }
  if (const auto* blob = std::get_if<SqlBlob>(&value)) {
    // A null pointer would bind NULL; an empty value is not that.
    const char* const bytes = blob->bytes.empty() ? "" : blob->bytes.data();
    return sqlite3_bind_blob64(statement, index, bytes, blob->bytes.size(), SQLITE_TRANSIENT);
  }
  return sqlite3_bind_null(statement, index);
}

SqlValue read_value(sqlite3_stmt* statement, int column) {
  const auto size = [&] {
    return static_cast<std::size_t>(sqlite3_column_bytes(statement, column));
  };
  switch (sqlite3_column_type(statement, column)) {
    case SQLITE_INTEGER:
      return static_cast<std::int64_t>(sqlite3_column_int64(statement, column));
    case SQLITE_TEXT: {
      const auto* const text = sqlite3_column_text(statement, column);
      return std::string(reinterpret_cast<const char*>(text), size());
    }
    case SQLITE_BLOB: {
      const auto* const bytes = static_cast<const char*>(sqlite3_column_blob(statement, column));
      return SqlBlob{bytes == nullptr ? std::string() : std::string(bytes, size())};
    }
    default:
      return std::monostate();
  }
}

class SqliteConnection final : public SqlConnection {
 public:
  SqliteConnection(Database db, fs::path file) : db_(std::move(db)), file_(std::move(file)) {}

  Result<std::vector<SqlRow>> query(std::string_view sql,
                                    const std::vector<SqlValue>& parameters) override;
  Result<std::int64_t> execute(std::string_view sql,
                               const std::vector<SqlValue>& parameters) override;
  Result<void> begin() override { return run("BEGIN IMMEDIATE"); }
  Result<void> commit() override { return run("COMMIT"); }
  Result<void> rollback() override { return run("ROLLBACK"); }
  [[nodiscard]] std::string_view blob_type() const override { return "BLOB"; }
  Result<void> keep_copy(std::string_view label) override;

  Result<void> run(std::string_view sql) {
    if (auto done = execute(sql, {}); !done) return done.error();
    return {};
  }

 private:
  Result<Statement> prepare(std::string_view sql, const std::vector<SqlValue>& parameters);

  Database db_;
  fs::path file_;
};

Result<Statement> SqliteConnection::prepare(std::string_view sql,
                                            const std::vector<SqlValue>& parameters) {
  sqlite3_stmt* raw = nullptr;
  const int prepared =
      sqlite3_prepare_v2(db_.get(), sql.data(), static_cast<int>(sql.size()), &raw, nullptr);
  Statement statement(raw);
  if (prepared != SQLITE_OK) return sqlite_error(db_.get(), sql.substr(0, 60));
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    // SQLite numbers $n by first appearance, so each is looked up by its name.
    const int index = sqlite3_bind_parameter_index(statement.get(), cat('$', i + 1).c_str());
    if (index == 0) continue;
    if (bind_value(statement.get(), index, parameters[i]) != SQLITE_OK) {
      return sqlite_error(db_.get(), "bind");
    }
  }
  return statement;
}

Result<std::vector<SqlRow>> SqliteConnection::query(std::string_view sql,
                                                    const std::vector<SqlValue>& parameters) {
  const auto statement = prepare(sql, parameters);
  if (!statement) return statement.error();
  sqlite3_stmt* const running = statement->get();
  auto names = std::make_shared<std::vector<std::string>>();
  const int columns = sqlite3_column_count(running);
  for (int i = 0; i < columns; ++i) names->emplace_back(sqlite3_column_name(running, i));

  std::vector<SqlRow> rows;
  for (;;) {
    const int step = sqlite3_step(running);
    if (step == SQLITE_DONE) return rows;
    if (step != SQLITE_ROW) return sqlite_error(db_.get(), sql.substr(0, 60));
    std::vector<SqlValue> values;
    values.reserve(static_cast<std::size_t>(columns));
    for (int i = 0; i < columns; ++i) values.push_back(read_value(running, i));
    rows.emplace_back(names, std::move(values));
  }
}

Result<std::int64_t> SqliteConnection::execute(std::string_view sql,
                                               const std::vector<SqlValue>& parameters) {
  if (auto rows = query(sql, parameters); !rows) return rows.error();
  return static_cast<std::int64_t>(sqlite3_changes64(db_.get()));
}

Result<void> SqliteConnection::keep_copy(std::string_view label) {
  if (file_.empty()) return {};
  const std::string copy = cat(file_.native(), ".", label);
  std::error_code ignored;
  fs::remove(copy, ignored);  // of an upgrade that was interrupted
  if (auto done = execute("VACUUM INTO $1", {copy}); !done) {
    return in_context(cat("keep a copy of ", file_.native()), done.error());
  }
  fs::permissions(copy, fs::perms::owner_read | fs::perms::owner_write, ignored);
  return {};
}

// Made by us, so that nobody else can read it even for a moment.
Result<void> make_private(const fs::path& file) {
  const Fd made(::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!made.valid()) return errno_error(cat("open ", file.native()), errno);
  return {};
}

// Room for what is yet to be written: on a disk that is full by then, environments
// can still be destroyed.  A file system that cannot do this does without.
void reserve_room(const fs::path& file) {
  constexpr off_t room = 4 << 20;
  const Fd log(::open(cat(file.native(), "-wal").c_str(), O_RDWR | O_CLOEXEC));
  if (log.valid()) (void)::fallocate(log.get(), FALLOC_FL_KEEP_SIZE, 0, room);
}

}  // namespace

Result<std::unique_ptr<SqlConnection>> open_sqlite(const fs::path& file) {
  if (!file.empty()) {
    if (auto made = make_private(file); !made) return made.error();
  }
  sqlite3* raw = nullptr;
  const std::string name = file.empty() ? ":memory:" : file.native();
  const int opened = sqlite3_open_v2(name.c_str(), &raw, SQLITE_OPEN_READWRITE, nullptr);
  Database db(raw);
  if (opened != SQLITE_OK) {
    return in_context(name, raw != nullptr
                                ? sqlite_error(raw, "open")
                                : Error{ErrorCode::internal, "database: open: out of memory"});
  }
  sqlite3_busy_timeout(raw, busy_milliseconds);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_ENABLE_LOAD_EXTENSION, 0, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(raw, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  auto connection = std::make_unique<SqliteConnection>(std::move(db), file);
  for (const std::string_view pragma :
       {"PRAGMA journal_mode = WAL", "PRAGMA synchronous = FULL", "PRAGMA foreign_keys = ON"}) {
    if (auto done = connection->run(pragma); !done) return in_context(name, done.error());
  }
  // Reads, which makes the log's file.
  if (auto done = connection->run("SELECT name FROM sqlite_master"); !done) {
    return in_context(name, done.error());
  }
  if (!file.empty()) reserve_room(file);
  return std::unique_ptr<SqlConnection>(std::move(connection));
}

}  // namespace fuse
