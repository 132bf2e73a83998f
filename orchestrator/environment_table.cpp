#include <array>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/text.h"
#include "orchestrator/api/json.h"
#include "orchestrator/json_text.h"
#include "orchestrator/sql_time.h"
#include "orchestrator/tables.h"

namespace fuse {

namespace {

constexpr std::string_view columns =
    "uid, revision, created, active, ended, vm_id, final_state, error_code, on_exit, "
    "settle_seconds, "
    "has_job, probes_health, step_names, body";

ErrorCode error_code_named(std::string_view name) {
  constexpr std::array codes = {
      ErrorCode::not_found,   ErrorCode::conflict,      ErrorCode::invalid_argument,
      ErrorCode::forbidden,   ErrorCode::unauthorized,  ErrorCode::payload_too_large,
      ErrorCode::unavailable, ErrorCode::unimplemented,
  };
  for (const ErrorCode code : codes) {
    if (to_string(code) == name) return code;
  }
  return ErrorCode::internal;
}

Result<EnvironmentRow> to_row(const SqlRow& row) {
  const auto body = parse_json(row.text("body"));
  if (!body) return in_context(cat("environment ", row.text("uid")), body.error());
  auto environment = parse_environment(*body);
  if (!environment) return in_context(cat("environment ", row.text("uid")), environment.error());
  EnvironmentRow out;
  out.environment = *std::move(environment);
  out.revision = row.integer("revision");
  out.created = from_sql_time(row.integer("created"));
  out.active = from_sql_time(row.integer("active"));
  if (!row.null("ended")) out.ended = from_sql_time(row.integer("ended"));
  out.vm_id = row.text("vm_id");
  out.final_state =
      environment_state_of(row.text("final_state")).value_or(EnvironmentState::destroyed);
  out.error_code = error_code_named(row.text("error_code"));
  out.on_exit = on_exit_of(row.text("on_exit")).value_or(OnExit::keep);
  out.settle_seconds = row.integer("settle_seconds");
  out.has_job = row.integer("has_job") != 0;
  out.probes_health = row.integer("probes_health") != 0;
  const auto names = parse_json(row.text("step_names"));
  if (!names) return names.error();
  for (const auto& name : *names) out.step_names.push_back(name.get<std::string>());
  return out;
}

Result<std::vector<EnvironmentRow>> to_rows(const Result<std::vector<SqlRow>>& rows) {
  if (!rows) return rows.error();
  std::vector<EnvironmentRow> out;
  for (const SqlRow& row : *rows) {
    auto read = to_row(row);
    if (!read) return read.error();
    out.push_back(*std::move(read));
  }
  return out;
}

SqlValue time_or_null(const std::optional<WallTime>& time) {
  if (!time) return std::monostate();
  return to_sql_time(*time);
}

std::int64_t number(bool flag) {
  return flag ? 1 : 0;
}

// The parameters of insert and update, $1 to $15.
std::vector<SqlValue> values_of(const EnvironmentRow& row) {
  const Environment& environment = row.environment;
  const nlohmann::ordered_json names = row.step_names;
  return {environment.uid,
          environment.id,
          environment.task_id,
          environment.host_id,
          std::string(to_string(environment.state)),
          to_sql_time(row.created),
          time_or_null(row.ended),
          row.vm_id,
          std::string(to_string(row.final_state)),
          std::string(to_string(row.error_code)),
          std::string(to_string(row.on_exit)),
          row.settle_seconds,
          number(row.has_job),
          number(row.probes_health),
          json_text(names),
          json_text(to_json(environment))};
}

}  // namespace

Result<void> EnvironmentTable::insert(const EnvironmentRow& row) {
  auto done = sql_.execute(
      "INSERT INTO environments (uid, id, task_id, host_id, state, created, ended, vm_id, "
      "final_state, error_code, on_exit, settle_seconds, has_job, probes_health, step_names, "
      "body, revision, events) VALUES "
      "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, 1, 0)",
      values_of(row));
  if (!done) return done.error();
  return {};
}

Result<void> EnvironmentTable::update(EnvironmentRow& row) {
  auto values = values_of(row);
  values.emplace_back(row.revision);
  const auto changed = sql_.execute(
      "UPDATE environments SET task_id = $3, host_id = $4, state = $5, created = $6, ended = $7, "
      "vm_id = $8, final_state = $9, error_code = $10, on_exit = $11, settle_seconds = $12, "
      "has_job = $13, probes_health = $14, step_names = $15, body = $16, revision = revision + 1 "
      "WHERE uid = $1 AND id = $2 AND revision = $17",
      values);
  if (!changed) return changed.error();
  if (*changed == 0) {
    return Error{ErrorCode::unavailable,
                 cat("environment ", row.environment.id, " was changed at the same time"),
                 {{"reason", "busy"}}};
  }
  ++row.revision;
  return {};
}

Result<std::optional<EnvironmentRow>> EnvironmentTable::one(std::string_view where,
                                                            const std::vector<SqlValue>& values) {
  const auto rows = sql_.query(cat("SELECT ", columns, " FROM environments WHERE ", where), values);
  if (!rows) return rows.error();
  if (rows->empty()) return std::optional<EnvironmentRow>();
  auto row = to_row(rows->front());
  if (!row) return row.error();
  return std::optional<EnvironmentRow>(*std::move(row));
}

Result<std::optional<EnvironmentRow>> EnvironmentTable::by_uid(const std::string& uid) {
  return one("uid = $1", {uid});
}

Result<std::optional<EnvironmentRow>> EnvironmentTable::live(const std::string& id) {
  return one("id = $1 AND ended IS NULL", {id});
}

Result<std::optional<EnvironmentRow>> EnvironmentTable::newest_ended(const std::string& id) {
  return one("id = $1 AND ended IS NOT NULL ORDER BY uid DESC LIMIT 1", {id});
}

Result<std::vector<EnvironmentRow>> EnvironmentTable::list(const EnvironmentFilter& filter,
                                                           const Position& after,
                                                           std::int64_t most) {
  return to_rows(sql_.query(cat("SELECT ", columns,
                                " FROM environments WHERE (id > $1 OR (id = $1 AND uid > $2)) "
                                "AND ($3 = '' OR task_id = $3) AND ($4 = '' OR state = $4) "
                                "AND ($5 = '' OR host_id = $5) AND ($6 = 1 OR ended IS NULL) "
                                "ORDER BY id, uid LIMIT $7"),
                            {after.id, after.uid, filter.task_id, filter.state, filter.host_id,
                             number(filter.include_ended), most}));
}

Result<std::vector<EnvironmentRow>> EnvironmentTable::live_on(const std::string& host_id) {
  return to_rows(sql_.query(cat("SELECT ", columns,
                                " FROM environments WHERE host_id = $1 AND ended IS NULL "
                                "ORDER BY id"),
                            {host_id}));
}

Result<std::vector<EnvironmentRow>> EnvironmentTable::running_with_probe() {
  return to_rows(sql_.query(cat("SELECT ", columns,
                                " FROM environments WHERE ended IS NULL AND probes_health = 1 "
                                "AND state = 'running' ORDER BY id"),
                            {}));
}

Result<void> EnvironmentTable::note_active(const std::string& uid, WallTime time) {
  auto done = sql_.execute("UPDATE environments SET active = $2 WHERE uid = $1 AND active < $2",
                           {uid, to_sql_time(time)});
  if (!done) return done.error();
  return {};
}

Result<std::int64_t> EnvironmentTable::remove_ended_before(WallTime time) {
  return sql_.execute(
      "DELETE FROM environments WHERE ended IS NOT NULL AND ended < $1 AND uid NOT IN "
      "(SELECT environment_uid FROM reservations)",
      {to_sql_time(time)});
}

}  // namespace fuse
