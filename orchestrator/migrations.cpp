#include "orchestrator/migrations.h"

#include <array>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/text.h"
#include "orchestrator/api/json.h"
#include "orchestrator/tables.h"

namespace fuse {

namespace {

// Times are nanoseconds since 1970; what only travels is the wire's own JSON.
// An environment is live until `ended` is set, and holds its task id and what is
// reserved for it exactly that long.
constexpr std::array<std::string_view, 12> first = {
    R"(CREATE TABLE hosts (
  id TEXT PRIMARY KEY,
  version BIGINT NOT NULL,
  state TEXT NOT NULL,
  token {blob},
  seen BIGINT NOT NULL,
  body TEXT NOT NULL
))",
    R"(CREATE TABLE environments (
  uid TEXT PRIMARY KEY,
  id TEXT NOT NULL,
  task_id TEXT NOT NULL,
  host_id TEXT NOT NULL,
  state TEXT NOT NULL,
  revision BIGINT NOT NULL,
  events BIGINT NOT NULL,
  created BIGINT NOT NULL,
  ended BIGINT,
  vm_id TEXT NOT NULL,
  final_state TEXT NOT NULL,
  error_code TEXT NOT NULL,
  on_exit TEXT NOT NULL,
  settle_seconds BIGINT NOT NULL,
  has_job BIGINT NOT NULL,
  probes_health BIGINT NOT NULL,
  step_names TEXT NOT NULL,
  body TEXT NOT NULL
))",
    "CREATE UNIQUE INDEX environments_live_id ON environments (id) WHERE ended IS NULL",
    "CREATE UNIQUE INDEX environments_live_task ON environments (task_id) WHERE ended IS NULL",
    "CREATE INDEX environments_by_id ON environments (id, uid)",
    "CREATE INDEX environments_by_host ON environments (host_id) WHERE ended IS NULL",
    R"(CREATE TABLE bindings (
  environment_uid TEXT NOT NULL REFERENCES environments (uid) ON DELETE CASCADE,
  host_id TEXT NOT NULL,
  device_uuid TEXT NOT NULL,
  kind TEXT NOT NULL,
  PRIMARY KEY (host_id, device_uuid)
))",
    R"(CREATE TABLE operations (
  id TEXT PRIMARY KEY,
  environment_uid TEXT NOT NULL UNIQUE REFERENCES environments (uid) ON DELETE CASCADE,
  kind TEXT NOT NULL,
  step TEXT NOT NULL,
  step_started BIGINT NOT NULL,
  lease_owner TEXT NOT NULL,
  lease_until BIGINT NOT NULL,
  attempts BIGINT NOT NULL,
  next_try BIGINT NOT NULL,
  deadline BIGINT NOT NULL
))",
    "CREATE INDEX operations_due ON operations (next_try)",
    R"(CREATE TABLE events (
  environment_uid TEXT NOT NULL REFERENCES environments (uid) ON DELETE CASCADE,
  sequence BIGINT NOT NULL,
  id TEXT NOT NULL UNIQUE,
  kind TEXT NOT NULL,
  body TEXT NOT NULL,
  PRIMARY KEY (environment_uid, sequence)
))",
    R"(CREATE TABLE secrets (
  environment_uid TEXT NOT NULL REFERENCES environments (uid) ON DELETE CASCADE,
  name TEXT NOT NULL,
  sealed {blob} NOT NULL,
  PRIMARY KEY (environment_uid, name)
))",
    R"(CREATE TABLE requests (
  environment_uid TEXT PRIMARY KEY REFERENCES environments (uid) ON DELETE CASCADE,
  sealed {blob} NOT NULL
))",
};

// Callers, work that one process of several does, and what each should know of the
// others.
constexpr std::array<std::string_view, 4> second = {
    "ALTER TABLE environments ADD COLUMN active BIGINT NOT NULL DEFAULT 0",
    R"(CREATE TABLE api_keys (
  id TEXT PRIMARY KEY,
  hash TEXT NOT NULL UNIQUE,
  label TEXT NOT NULL,
  created BIGINT NOT NULL,
  last_used BIGINT,
  revoked BIGINT
))",
    R"(CREATE TABLE sessions (
  hash TEXT PRIMARY KEY,
  key_id TEXT NOT NULL,
  token_mark TEXT NOT NULL,
  expires BIGINT NOT NULL
))",
    R"(CREATE TABLE leases (
  name TEXT PRIMARY KEY,
  owner TEXT NOT NULL,
  until BIGINT NOT NULL
))",
};

// What live environments take of their hosts, so that it can be summed up by the
// database.
constexpr std::array<std::string_view, 2> third = {
    R"(CREATE TABLE reservations (
  environment_uid TEXT PRIMARY KEY REFERENCES environments (uid) ON DELETE CASCADE,
  host_id TEXT NOT NULL,
  cpus BIGINT NOT NULL,
  ram_mb BIGINT NOT NULL,
  storage_gb BIGINT NOT NULL,
  gpus BIGINT NOT NULL,
  gpu_profile TEXT NOT NULL
))",
    "CREATE INDEX reservations_by_host ON reservations (host_id)",
};

Result<void> reserve_for_the_living(SqlConnection& sql) {
  const auto rows =
      sql.query("SELECT uid, host_id, body FROM environments WHERE ended IS NULL", {});
  if (!rows) return rows.error();
  ReservationTable reservations(sql);
  for (const SqlRow& row : *rows) {
    const auto body = parse_json(row.text("body"));
    if (!body) return in_context(cat("environment ", row.text("uid")), body.error());
    const auto environment = parse_environment(*body);
    if (!environment) {
      return in_context(cat("environment ", row.text("uid")), environment.error());
    }
    auto done = reservations.insert({.environment_uid = row.text("uid"),
                                     .host_id = row.text("host_id"),
                                     .spec = environment->spec});
    if (!done) return done;
  }
  return {};
}

constexpr std::array<Migration, 3> all = {
    {{1, first}, {2, second}, {3, third, reserve_for_the_living}}};

std::string with_types(std::string_view statement, const SqlConnection& sql) {
  constexpr std::string_view mark = "{blob}";
  std::string out(statement);
  for (std::size_t at = 0; (at = out.find(mark, at)) != std::string::npos;) {
    out.replace(at, mark.size(), sql.blob_type());
  }
  return out;
}

Result<std::int64_t> read_version(SqlConnection& sql) {
  const auto rows = sql.query("SELECT value FROM meta WHERE name = 'schema'", {});
  if (!rows) return rows.error();
  if (rows->empty()) return std::int64_t{0};
  return parse_int(rows->front().text("value")).value_or(0);
}

Result<std::int64_t> current_version(SqlConnection& sql) {
  auto transaction = SqlTransaction::begin(sql);
  if (!transaction) return transaction.error();
  if (auto locked = sql.lock_schema(); !locked) return locked.error();
  auto made = sql.execute(
      "CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value TEXT NOT NULL)", {});
  if (!made) return made.error();
  const auto version = read_version(sql);
  if (!version) return version.error();
  if (auto done = transaction->commit(); !done) return done.error();
  return *version;
}

Result<void> apply(SqlConnection& sql, std::span<const Migration> steps) {
  auto transaction = SqlTransaction::begin(sql);
  if (!transaction) return transaction.error();
  if (auto locked = sql.lock_schema(); !locked) return locked;
  // Another process may have been faster since the version was looked at.
  const auto version = read_version(sql);
  if (!version) return version.error();
  if (*version >= steps.back().version) return {};
  for (const Migration& step : steps) {
    if (step.version <= *version) continue;
    for (const std::string_view statement : step.statements) {
      if (auto done = sql.execute(with_types(statement, sql), {}); !done) {
        return in_context(cat("bring the database to version ", step.version), done.error());
      }
    }
    if (step.fill == nullptr) continue;
    if (auto done = step.fill(sql); !done) {
      return in_context(cat("bring the database to version ", step.version), done.error());
    }
  }
  auto noted = sql.execute(
      "INSERT INTO meta (name, value) VALUES ('schema', $1) "
      "ON CONFLICT (name) DO UPDATE SET value = excluded.value",
      {std::to_string(steps.back().version)});
  if (!noted) return noted.error();
  return transaction->commit();
}

}  // namespace

std::span<const Migration> migrations() {
  return all;
}

Result<void> migrate(SqlConnection& sql, std::span<const Migration> steps) {
  const auto version = current_version(sql);
  if (!version) return version.error();
  const std::int64_t wanted = steps.back().version;
  if (*version > wanted) {
    return Error{ErrorCode::conflict,
                 cat("the database has schema version ", *version,
                     ", this program knows up to version ", wanted, ": use a newer fuse")};
  }
  if (*version == wanted) return {};
  if (*version > 0) {
    if (auto kept = sql.keep_copy(cat('v', *version)); !kept) return kept;
  }
  return apply(sql, steps);
}

}  // namespace fuse
