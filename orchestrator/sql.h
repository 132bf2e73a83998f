#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/result.h"

namespace fuse {

struct SqlBlob {
  std::string bytes{};
};

// NULL, a whole number, text or bytes.
using SqlValue = std::variant<std::monostate, std::int64_t, std::string, SqlBlob>;

// One row of an answer, read by column name.  A NULL reads as 0 or "".
class SqlRow {
 public:
  using Names = std::shared_ptr<const std::vector<std::string>>;
  SqlRow(Names names, std::vector<SqlValue> values)
      : names_(std::move(names)), values_(std::move(values)) {}

  [[nodiscard]] bool null(std::string_view column) const;
  [[nodiscard]] std::int64_t integer(std::string_view column) const;
  [[nodiscard]] std::string text(std::string_view column) const;
  [[nodiscard]] std::string bytes(std::string_view column) const;

 private:
  [[nodiscard]] const SqlValue& at(std::string_view column) const;
  Names names_;
  std::vector<SqlValue> values_;
};

// A connection to a database that understands $1..$n.  Used by one thread at a
// time.  An error has details.reason "unique" when a unique index refused a row,
// "busy" when the same transaction may succeed if it is run again, "store" when the
// database is out of reach, "commit" when nobody knows whether it was committed.
class SqlConnection {
 public:
  virtual ~SqlConnection() = default;
  // One statement; $1 stands for the first parameter, wherever it appears.
  virtual Result<std::vector<SqlRow>> query(std::string_view sql,
                                            const std::vector<SqlValue>& parameters) = 0;
  // The number of rows it changed.
  virtual Result<std::int64_t> execute(std::string_view sql,
                                       const std::vector<SqlValue>& parameters) = 0;
  virtual Result<void> begin() = 0;
  virtual Result<void> commit() = 0;
  virtual Result<void> rollback() = 0;
  // What a column of bytes is called.
  [[nodiscard]] virtual std::string_view blob_type() const = 0;
  // What a SELECT ends in that keeps its rows for this transaction alone; empty
  // where transactions take turns anyway.
  [[nodiscard]] virtual std::string_view row_lock() const { return ""; }
  // Within a transaction: no other process changes the schema until its end.
  virtual Result<void> lock_schema() { return {}; }
  // False once it has lost its database.
  [[nodiscard]] virtual bool usable() const { return true; }
  // Keeps a copy of the whole database, told apart by `label`, where that is
  // ours to do: beside the file.  Outside a transaction.
  virtual Result<void> keep_copy(std::string_view label) = 0;
};

// Undoes its transaction unless it was committed.
class SqlTransaction {
 public:
  static Result<SqlTransaction> begin(SqlConnection& sql);
  Result<void> commit();

 private:
  struct Rollback {
    void operator()(SqlConnection* sql) const { (void)sql->rollback(); }
  };
  explicit SqlTransaction(SqlConnection& sql) : open_(&sql) {}
  std::unique_ptr<SqlConnection, Rollback> open_;
};

}  // namespace fuse
