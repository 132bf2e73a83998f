#include "orchestrator/tables.h"

namespace fuse {

Result<void> ReservationTable::insert(const ReservationRow& row) {
  auto done = sql_.execute(
      "INSERT INTO reservations (environment_uid, host_id, cpus, ram_mb, storage_gb, gpus, "
      "gpu_profile) VALUES ($1, $2, $3, $4, $5, $6, $7)",
      {row.environment_uid, row.host_id, std::int64_t{row.spec.cpus}, std::int64_t{row.spec.ram_mb},
       std::int64_t{row.spec.storage_gb}, std::int64_t{row.spec.gpus}, row.spec.gpu_profile});
  if (!done) return done.error();
  return {};
}

Result<std::vector<ReservationSum>> ReservationTable::on_host(const std::string& host_id) {
  const auto rows = sql_.query(
      "SELECT gpu_profile, COUNT(*) AS environments, CAST(SUM(cpus) AS BIGINT) AS cpus, "
      "CAST(SUM(ram_mb) AS BIGINT) AS ram_mb, CAST(SUM(storage_gb) AS BIGINT) AS storage_gb, "
      "CAST(SUM(gpus) AS BIGINT) AS gpus FROM reservations WHERE host_id = $1 "
      "GROUP BY gpu_profile",
      {host_id});
  if (!rows) return rows.error();
  std::vector<ReservationSum> out;
  for (const SqlRow& row : *rows) {
    const auto number = [&](std::string_view column) {
      return static_cast<std::int32_t>(row.integer(column));
    };
    out.push_back({.gpu_profile = row.text("gpu_profile"),
                   .environments = number("environments"),
                   .cpus = number("cpus"),
                   .ram_mb = number("ram_mb"),
                   .storage_gb = number("storage_gb"),
                   .gpus = number("gpus")});
  }
  return out;
}

Result<std::vector<std::string>> ReservationTable::of_ended(const std::string& host_id) {
  const auto rows = sql_.query(
      "SELECT environment_uid FROM reservations WHERE host_id = $1 AND environment_uid IN "
      "(SELECT uid FROM environments WHERE ended IS NOT NULL) ORDER BY environment_uid",
      {host_id});
  if (!rows) return rows.error();
  std::vector<std::string> uids;
  uids.reserve(rows->size());
  for (const SqlRow& row : *rows) uids.push_back(row.text("environment_uid"));
  return uids;
}

Result<void> ReservationTable::release(const std::string& uid) {
  auto done = sql_.execute("DELETE FROM reservations WHERE environment_uid = $1", {uid});
  if (!done) return done.error();
  return {};
}

}  // namespace fuse
