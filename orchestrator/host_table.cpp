#include <nlohmann/json.hpp>

#include "base/crypto.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "orchestrator/api/json.h"
#include "orchestrator/json_text.h"
#include "orchestrator/sql_time.h"
#include "orchestrator/tables.h"

namespace fuse {

namespace {

std::string body_of(const HostRow& row) {
  HostInfo kept = row.info;
  kept.allocated = {};
  kept.warnings.clear();
  auto body = to_json(kept);
  body["declared"] = to_json(row.declared);
  return json_text(body);
}

SqlValue sealed_token(const std::string& key, const HostRow& row) {
  if (row.token.empty()) return std::monostate();
  return SqlBlob{seal(key, cat("host ", row.info.id), row.token)};
}

}  // namespace

Result<void> HostTable::insert(const HostRow& row) {
  auto done = sql_.execute(
      "INSERT INTO hosts (id, version, state, token, seen, body) VALUES ($1, 1, $2, $3, $4, $5)",
      {row.info.id, std::string(to_string(row.info.state)), sealed_token(key_, row),
       to_sql_time(row.seen), body_of(row)});
  if (!done) return done.error();
  return {};
}

Result<void> HostTable::update(const HostRow& row) {
  auto done = sql_.execute(
      "UPDATE hosts SET version = version + 1, state = $2, token = $3, seen = $4, body = $5 "
      "WHERE id = $1",
      {row.info.id, std::string(to_string(row.info.state)), sealed_token(key_, row),
       to_sql_time(row.seen), body_of(row)});
  if (!done) return done.error();
  return {};
}

Result<std::optional<HostRow>> HostTable::by_id(const std::string& id) {
  return one("", id);
}

Result<std::optional<HostRow>> HostTable::to_change(const std::string& id) {
  return one(sql_.row_lock(), id);
}

Result<std::optional<HostRow>> HostTable::one(std::string_view lock, const std::string& id) {
  const auto rows =
      sql_.query(cat("SELECT version, token, seen, body FROM hosts WHERE id = $1", lock), {id});
  if (!rows) return rows.error();
  if (rows->empty()) return std::optional<HostRow>();
  const SqlRow& row = rows->front();
  const auto body = parse_json(row.text("body"));
  if (!body) return in_context(cat("host ", id), body.error());
  auto info = parse_host_info(*body);
  if (!info) return in_context(cat("host ", id), info.error());
  const auto declared = body->find("declared");
  auto said = declared == body->end() ? Result<HostCapacity>(HostCapacity())
                                      : parse_host_capacity(*declared);
  if (!said) return in_context(cat("host ", id), said.error());
  HostRow out{.info = *std::move(info),
              .version = row.integer("version"),
              .seen = from_sql_time(row.integer("seen")),
              .declared = *std::move(said)};
  if (!row.null("token")) {
    auto token = open_sealed(key_, cat("host ", id), row.bytes("token"));
    if (!token) return in_context(cat("the token of host ", id), token.error());
    out.token = *std::move(token);
  }
  return std::optional<HostRow>(std::move(out));
}

Result<std::vector<HostTable::Mark>> HostTable::marks() {
  const auto rows = sql_.query("SELECT id, version, seen FROM hosts ORDER BY id", {});
  if (!rows) return rows.error();
  std::vector<Mark> out;
  for (const SqlRow& row : *rows) {
    out.push_back({row.text("id"), row.integer("version"), from_sql_time(row.integer("seen"))});
  }
  return out;
}

Result<HostTable::Raised> HostTable::raise(const std::string& id, std::int64_t version) {
  const auto changed = sql_.execute(
      "UPDATE hosts SET version = version + 1 WHERE id = $1 AND version = $2", {id, version});
  if (!changed) return changed.error();
  return *changed == 1 ? Raised::yes : Raised::moved;
}

Result<void> HostTable::remove(const std::string& id) {
  for (const std::string_view statement :
       {"DELETE FROM bindings WHERE host_id = $1", "DELETE FROM reservations WHERE host_id = $1",
        "DELETE FROM hosts WHERE id = $1"}) {
    if (auto done = sql_.execute(statement, {id}); !done) return done.error();
  }
  return {};
}

Result<void> HostTable::touch(const std::string& id) {
  auto done = sql_.execute("UPDATE hosts SET version = version + 1 WHERE id = $1", {id});
  if (!done) return done.error();
  return {};
}

Result<void> HostTable::note_seen(const std::string& id, WallTime time) {
  auto done = sql_.execute("UPDATE hosts SET seen = $2 WHERE id = $1", {id, to_sql_time(time)});
  if (!done) return done.error();
  return {};
}

}  // namespace fuse
