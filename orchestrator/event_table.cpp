#include <nlohmann/json.hpp>

#include "base/ids.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "orchestrator/api/json.h"
#include "orchestrator/json_text.h"
#include "orchestrator/tables.h"

namespace fuse {

namespace {

Result<EventRow> to_row(const SqlRow& row) {
  const auto body = parse_json(row.text("body"));
  if (!body) return in_context("an event", body.error());
  auto event = parse_environment_event(*body);
  if (!event) return in_context("an event", event.error());
  return EventRow{.sequence = row.integer("sequence"), .event = *std::move(event)};
}

}  // namespace

Result<void> EventTable::append(const Environment& environment, EnvironmentEvent event) {
  // The counter's row is locked until the commit, so that numbers appear in
  // their order and a reader that goes on after one never misses another.
  const auto counted =
      sql_.query("UPDATE environments SET events = events + 1 WHERE uid = $1 RETURNING events",
                 {environment.uid});
  if (!counted) return counted.error();
  if (counted->empty()) {
    return Error{ErrorCode::not_found, cat("vm not found: vm ", environment.id)};
  }
  event.id = random_hex(16);
  event.vm_id = environment.id;
  if (event.updated_at.empty()) event.updated_at = environment.updated_at;
  auto done = sql_.execute(
      "INSERT INTO events (environment_uid, sequence, id, kind, body) VALUES ($1, $2, $3, $4, $5)",
      {environment.uid, counted->front().integer("events"), event.id, event.event,
       json_text(to_json(event))});
  if (!done) return done.error();
  touched_.insert(environment.uid);
  return {};
}

Result<std::vector<EventRow>> EventTable::after(const std::string& uid, std::int64_t sequence,
                                                bool all_kinds) {
  const auto rows = sql_.query(
      "SELECT sequence, body FROM events WHERE environment_uid = $1 AND sequence > $2 AND "
      "($3 = 1 OR kind IN ('state', 'step')) ORDER BY sequence LIMIT 500",
      {uid, sequence, static_cast<std::int64_t>(all_kinds ? 1 : 0)});
  if (!rows) return rows.error();
  std::vector<EventRow> out;
  for (const SqlRow& row : *rows) {
    auto event = to_row(row);
    if (!event) return event.error();
    out.push_back(*std::move(event));
  }
  return out;
}

Result<std::optional<EventRow>> EventTable::newest_state(const std::string& uid) {
  const auto rows = sql_.query(
      "SELECT sequence, body FROM events WHERE environment_uid = $1 AND kind = 'state' "
      "ORDER BY sequence DESC LIMIT 1",
      {uid});
  if (!rows) return rows.error();
  if (rows->empty()) return std::optional<EventRow>();
  auto event = to_row(rows->front());
  if (!event) return event.error();
  return std::optional<EventRow>(*std::move(event));
}

Result<std::optional<std::int64_t>> EventTable::sequence_of(const std::string& uid,
                                                            const std::string& id) {
  const auto rows =
      sql_.query("SELECT sequence FROM events WHERE environment_uid = $1 AND id = $2", {uid, id});
  if (!rows) return rows.error();
  if (rows->empty()) return std::optional<std::int64_t>();
  return std::optional<std::int64_t>(rows->front().integer("sequence"));
}

}  // namespace fuse
