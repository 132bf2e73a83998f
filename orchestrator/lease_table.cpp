#include "orchestrator/sql_time.h"
#include "orchestrator/tables.h"

namespace fuse {

Result<LeaseTable::Taken> LeaseTable::take(const std::string& name, const std::string& owner,
                                           WallTime now, WallTime until) {
  const auto changed = sql_.execute(
      "INSERT INTO leases (name, owner, until) VALUES ($1, $2, $3) "
      "ON CONFLICT (name) DO UPDATE SET owner = excluded.owner, until = excluded.until "
      "WHERE leases.owner = excluded.owner OR leases.until <= $4",
      {name, owner, to_sql_time(until), to_sql_time(now)});
  if (!changed) return changed.error();
  return *changed == 1 ? Taken::yes : Taken::no;
}

}  // namespace fuse
