#include "base/text.h"
#include "orchestrator/sql_time.h"
#include "orchestrator/tables.h"

namespace fuse {

namespace {

SqlValue optional_time(const std::optional<WallTime>& time) {
  if (!time) return std::monostate();
  return to_sql_time(*time);
}

std::optional<WallTime> time_in(const SqlRow& row, std::string_view column) {
  if (row.null(column)) return std::nullopt;
  return from_sql_time(row.integer(column));
}

ApiKeyRow key_of(const SqlRow& row) {
  return {.id = row.text("id"),
          .hash = row.text("hash"),
          .label = row.text("label"),
          .created = from_sql_time(row.integer("created")),
          .last_used = time_in(row, "last_used"),
          .revoked = time_in(row, "revoked")};
}

constexpr std::string_view columns = "id, hash, label, created, last_used, revoked";

}  // namespace

Result<void> CredentialTable::insert_key(const ApiKeyRow& row) {
  auto done = sql_.execute(
      "INSERT INTO api_keys (id, hash, label, created, last_used, revoked) "
      "VALUES ($1, $2, $3, $4, $5, $6)",
      {row.id, row.hash, row.label, to_sql_time(row.created), optional_time(row.last_used),
       optional_time(row.revoked)});
  if (!done) return done.error();
  return {};
}

Result<std::optional<ApiKeyRow>> CredentialTable::one_key(std::string_view column,
                                                          const std::string& value) {
  const auto rows =
      sql_.query(cat("SELECT ", columns, " FROM api_keys WHERE ", column, " = $1"), {value});
  if (!rows) return rows.error();
  if (rows->empty()) return std::optional<ApiKeyRow>();
  return std::optional<ApiKeyRow>(key_of(rows->front()));
}

Result<std::optional<ApiKeyRow>> CredentialTable::key_by_hash(const std::string& hash) {
  return one_key("hash", hash);
}

Result<std::optional<ApiKeyRow>> CredentialTable::key_by_id(const std::string& id) {
  return one_key("id", id);
}

Result<std::vector<ApiKeyRow>> CredentialTable::keys() {
  const auto rows =
      sql_.query(cat("SELECT ", columns, " FROM api_keys ORDER BY created DESC, id DESC"), {});
  if (!rows) return rows.error();
  std::vector<ApiKeyRow> out;
  for (const SqlRow& row : *rows) out.push_back(key_of(row));
  return out;
}

Result<void> CredentialTable::note_use(const std::string& id, WallTime time) {
  auto done =
      sql_.execute("UPDATE api_keys SET last_used = $2 WHERE id = $1", {id, to_sql_time(time)});
  if (!done) return done.error();
  return {};
}

Result<void> CredentialTable::revoke(const std::string& id, WallTime time) {
  auto done = sql_.execute("UPDATE api_keys SET revoked = $2 WHERE id = $1 AND revoked IS NULL",
                           {id, to_sql_time(time)});
  if (!done) return done.error();
  return {};
}

Result<void> CredentialTable::insert_session(const SessionRow& row) {
  auto done = sql_.execute(
      "INSERT INTO sessions (hash, key_id, token_mark, expires) VALUES ($1, $2, $3, $4)",
      {row.hash, row.key_id, row.token_mark, to_sql_time(row.expires)});
  if (!done) return done.error();
  return {};
}

Result<std::optional<SessionRow>> CredentialTable::session(const std::string& hash) {
  const auto rows =
      sql_.query("SELECT key_id, token_mark, expires FROM sessions WHERE hash = $1", {hash});
  if (!rows) return rows.error();
  if (rows->empty()) return std::optional<SessionRow>();
  const SqlRow& row = rows->front();
  return std::optional<SessionRow>(SessionRow{.hash = hash,
                                              .key_id = row.text("key_id"),
                                              .token_mark = row.text("token_mark"),
                                              .expires = from_sql_time(row.integer("expires"))});
}

Result<void> CredentialTable::end_session(const std::string& hash) {
  auto done = sql_.execute("DELETE FROM sessions WHERE hash = $1", {hash});
  if (!done) return done.error();
  return {};
}

Result<void> CredentialTable::remove_sessions_before(WallTime time) {
  auto done = sql_.execute("DELETE FROM sessions WHERE expires < $1", {to_sql_time(time)});
  if (!done) return done.error();
  return {};
}

}  // namespace fuse
