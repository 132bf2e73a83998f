#include "base/text.h"
#include "orchestrator/sql_time.h"
#include "orchestrator/tables.h"

namespace fuse {

namespace {

constexpr std::string_view columns =
    "id, environment_uid, kind, step, step_started, lease_owner, lease_until, attempts, next_try, "
    "deadline";

OperationRow to_row(const SqlRow& row) {
  return {.id = row.text("id"),
          .environment_uid = row.text("environment_uid"),
          .kind = operation_kind_of(row.text("kind")).value_or(OperationKind::destroy),
          .step = row.text("step"),
          .step_started = from_sql_time(row.integer("step_started")),
          .lease_owner = row.text("lease_owner"),
          .lease_until = from_sql_time(row.integer("lease_until")),
          .attempts = row.integer("attempts"),
          .next_try = from_sql_time(row.integer("next_try")),
          .deadline = from_sql_time(row.integer("deadline"))};
}

std::vector<SqlValue> values_of(const OperationRow& row) {
  return {row.id,
          row.environment_uid,
          std::string(to_string(row.kind)),
          row.step,
          to_sql_time(row.step_started),
          row.lease_owner,
          to_sql_time(row.lease_until),
          row.attempts,
          to_sql_time(row.next_try),
          to_sql_time(row.deadline)};
}

Result<std::optional<OperationRow>> first_of(const Result<std::vector<SqlRow>>& rows) {
  if (!rows) return rows.error();
  if (rows->empty()) return std::optional<OperationRow>();
  return std::optional<OperationRow>(to_row(rows->front()));
}

}  // namespace

Result<void> OperationTable::insert(const OperationRow& row) {
  auto done = sql_.execute(cat("INSERT INTO operations (", columns,
                               ") VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)"),
                           values_of(row));
  if (!done) return done.error();
  return {};
}

Result<std::optional<OperationRow>> OperationTable::by_id(const std::string& id) {
  return first_of(
      sql_.query(cat("SELECT ", columns, " FROM operations WHERE id = $1", sql_.row_lock()), {id}));
}

Result<std::optional<OperationRow>> OperationTable::of_environment(const std::string& uid) {
  return first_of(sql_.query(
      cat("SELECT ", columns, " FROM operations WHERE environment_uid = $1", sql_.row_lock()),
      {uid}));
}

Result<std::optional<OperationRow>> OperationTable::claim(const std::string& owner, WallTime now,
                                                          WallTime lease_until) {
  auto due = first_of(sql_.query(cat("SELECT ", columns,
                                     " FROM operations WHERE next_try <= $1 AND "
                                     "lease_until <= $1 ORDER BY next_try, id LIMIT 1"),
                                 {to_sql_time(now)}));
  if (!due || !*due) return due;
  // Says so again, for a database where another replica may have read it too.
  return first_of(
      sql_.query(cat("UPDATE operations SET lease_owner = $2, lease_until = $3 WHERE id = $1 AND "
                     "lease_until <= $4 RETURNING ",
                     columns),
                 {(*due)->id, owner, to_sql_time(lease_until), to_sql_time(now)}));
}

Result<void> OperationTable::update(const OperationRow& row) {
  auto done = sql_.execute(
      "UPDATE operations SET kind = $3, step = $4, step_started = $5, lease_owner = $6, "
      "lease_until = $7, attempts = $8, next_try = $9, deadline = $10 "
      "WHERE id = $1 AND environment_uid = $2",
      values_of(row));
  if (!done) return done.error();
  return {};
}

Result<std::vector<std::string>> OperationTable::renew(const std::string& owner,
                                                       WallTime lease_until) {
  const auto rows =
      sql_.query("UPDATE operations SET lease_until = $2 WHERE lease_owner = $1 RETURNING id",
                 {owner, to_sql_time(lease_until)});
  if (!rows) return rows.error();
  std::vector<std::string> ids;
  ids.reserve(rows->size());
  for (const SqlRow& row : *rows) ids.push_back(row.text("id"));
  return ids;
}

Result<void> OperationTable::free_all() {
  auto done = sql_.execute("UPDATE operations SET lease_owner = '', lease_until = 0", {});
  if (!done) return done.error();
  return {};
}

Result<void> OperationTable::remove(const std::string& id) {
  auto done = sql_.execute("DELETE FROM operations WHERE id = $1", {id});
  if (!done) return done.error();
  return {};
}

}  // namespace fuse
