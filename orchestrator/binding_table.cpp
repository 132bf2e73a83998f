#include "orchestrator/tables.h"

namespace fuse {

namespace {

std::vector<BindingRow> to_rows(const std::vector<SqlRow>& rows) {
  std::vector<BindingRow> out;
  out.reserve(rows.size());
  for (const SqlRow& row : rows) {
    out.push_back({.environment_uid = row.text("environment_uid"),
                   .host_id = row.text("host_id"),
                   .device_uuid = row.text("device_uuid"),
                   .kind = row.text("kind") == "mig" ? DeviceKind::mig : DeviceKind::gpu});
  }
  return out;
}

}  // namespace

Result<void> BindingTable::insert(const BindingRow& row) {
  auto done = sql_.execute(
      "INSERT INTO bindings (environment_uid, host_id, device_uuid, kind) VALUES ($1, $2, $3, $4)",
      {row.environment_uid, row.host_id, row.device_uuid,
       std::string(row.kind == DeviceKind::mig ? "mig" : "gpu")});
  if (!done) return done.error();
  return {};
}

Result<std::vector<BindingRow>> BindingTable::of_environment(const std::string& uid) {
  const auto rows = sql_.query(
      "SELECT environment_uid, host_id, device_uuid, kind FROM bindings "
      "WHERE environment_uid = $1 ORDER BY device_uuid",
      {uid});
  if (!rows) return rows.error();
  return to_rows(*rows);
}

Result<std::vector<BindingRow>> BindingTable::on_host(const std::string& host_id) {
  const auto rows = sql_.query(
      "SELECT environment_uid, host_id, device_uuid, kind FROM bindings "
      "WHERE host_id = $1 ORDER BY device_uuid",
      {host_id});
  if (!rows) return rows.error();
  return to_rows(*rows);
}

Result<void> BindingTable::release(const std::string& uid) {
  auto done = sql_.execute("DELETE FROM bindings WHERE environment_uid = $1", {uid});
  if (!done) return done.error();
  return {};
}

}  // namespace fuse
