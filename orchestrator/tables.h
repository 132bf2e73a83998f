#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/rows.h"
#include "orchestrator/sql.h"

// The tables of the database, each usable within one transaction.
namespace fuse {

class EnvironmentTable {
 public:
  explicit EnvironmentTable(SqlConnection& sql) : sql_(sql) {}
  // conflict with details.reason "unique" while its id or task id is live.
  Result<void> insert(const EnvironmentRow& row);
  // All but uid and id; raises the revision.  unavailable with details.reason
  // "busy" when somebody else changed it since it was read.
  Result<void> update(EnvironmentRow& row);
  Result<std::optional<EnvironmentRow>> by_uid(const std::string& uid);
  Result<std::optional<EnvironmentRow>> live(const std::string& id);
  Result<std::optional<EnvironmentRow>> newest_ended(const std::string& id);
  // Ascending by (id, uid), those after `after`, at most `most`.
  struct Position {
    std::string id{};
    std::string uid{};
  };
  Result<std::vector<EnvironmentRow>> list(const EnvironmentFilter& filter, const Position& after,
                                           std::int64_t most);
  Result<std::vector<EnvironmentRow>> live_on(const std::string& host_id);
  Result<std::vector<EnvironmentRow>> running_with_probe();
  // That somebody did something in it.
  Result<void> note_active(const std::string& uid, WallTime time);
  // With everything that belongs to them; not those that still hold something.
  Result<std::int64_t> remove_ended_before(WallTime time);

 private:
  Result<std::optional<EnvironmentRow>> one(std::string_view where,
                                            const std::vector<SqlValue>& values);
  SqlConnection& sql_;
};

class OperationTable {
 public:
  explicit OperationTable(SqlConnection& sql) : sql_(sql) {}
  Result<void> insert(const OperationRow& row);
  // These two keep others from changing it until the transaction's end.
  Result<std::optional<OperationRow>> by_id(const std::string& id);
  Result<std::optional<OperationRow>> of_environment(const std::string& uid);
  // The longest due one that nobody holds, now leased to `owner`.
  Result<std::optional<OperationRow>> claim(const std::string& owner, WallTime now,
                                            WallTime lease_until);
  Result<void> update(const OperationRow& row);
  // Moves the end of every lease of `owner`; the operations that it has.
  Result<std::vector<std::string>> renew(const std::string& owner, WallTime lease_until);
  // Ends every lease.
  Result<void> free_all();
  Result<void> remove(const std::string& id);

 private:
  SqlConnection& sql_;
};

class EventTable {
 public:
  explicit EventTable(SqlConnection& sql, std::set<std::string>& touched)
      : sql_(sql), touched_(touched) {}
  // Gives the event its id, vm_id and, unless it has one, updated_at.
  Result<void> append(const Environment& environment, EnvironmentEvent event);
  // Those of kind "state" and "step", or of all kinds.  At most 500.
  Result<std::vector<EventRow>> after(const std::string& uid, std::int64_t sequence,
                                      bool all_kinds);
  // The newest "state" event.
  Result<std::optional<EventRow>> newest_state(const std::string& uid);
  Result<std::optional<std::int64_t>> sequence_of(const std::string& uid, const std::string& id);

 private:
  SqlConnection& sql_;
  std::set<std::string>& touched_;
};

class HostTable {
 public:
  HostTable(SqlConnection& sql, const std::string& key) : sql_(sql), key_(key) {}
  Result<void> insert(const HostRow& row);
  Result<void> update(const HostRow& row);  // raises the version
  Result<std::optional<HostRow>> by_id(const std::string& id);
  // The same for a transaction that is going to update it: nobody else does until
  // its end.
  Result<std::optional<HostRow>> to_change(const std::string& id);
  struct Mark {
    std::string id{};
    std::int64_t version = 0;
    WallTime seen{};
  };
  Result<std::vector<Mark>> marks();  // ascending by id
  // Raises the version if it is still `version`; else nothing happens.
  enum class Raised { yes, moved };
  Result<Raised> raise(const std::string& id, std::int64_t version);
  Result<void> touch(const std::string& id);  // raises it whatever it is
  Result<void> note_seen(const std::string& id, WallTime time);
  Result<void> remove(const std::string& id);  // and what is held on it

 private:
  Result<std::optional<HostRow>> one(std::string_view lock, const std::string& id);
  SqlConnection& sql_;
  const std::string& key_;
};

class BindingTable {
 public:
  explicit BindingTable(SqlConnection& sql) : sql_(sql) {}
  // conflict with details.reason "unique" when the device is held.
  Result<void> insert(const BindingRow& row);
  Result<std::vector<BindingRow>> of_environment(const std::string& uid);
  Result<std::vector<BindingRow>> on_host(const std::string& host_id);
  Result<void> release(const std::string& uid);

 private:
  SqlConnection& sql_;
};

class ReservationTable {
 public:
  explicit ReservationTable(SqlConnection& sql) : sql_(sql) {}
  Result<void> insert(const ReservationRow& row);
  Result<std::vector<ReservationSum>> on_host(const std::string& host_id);
  // The uids of ended environments that something on the host is still set aside for.
  Result<std::vector<std::string>> of_ended(const std::string& host_id);
  Result<void> release(const std::string& uid);

 private:
  SqlConnection& sql_;
};

// What a create needs until it is delivered, unreadable without the key.
class DeliveryTable {
 public:
  DeliveryTable(SqlConnection& sql, const std::string& key) : sql_(sql), key_(key) {}
  Result<void> insert(const std::string& uid, const CreateEnvironmentRequest& request);
  // With its secrets; nothing once it was erased.
  Result<std::optional<CreateEnvironmentRequest>> read(const std::string& uid);
  Result<void> erase(const std::string& uid);

 private:
  SqlConnection& sql_;
  const std::string& key_;
};

// What callers are known by.
class CredentialTable {
 public:
  explicit CredentialTable(SqlConnection& sql) : sql_(sql) {}
  Result<void> insert_key(const ApiKeyRow& row);
  Result<std::optional<ApiKeyRow>> key_by_hash(const std::string& hash);
  Result<std::optional<ApiKeyRow>> key_by_id(const std::string& id);
  Result<std::vector<ApiKeyRow>> keys();  // newest first
  Result<void> note_use(const std::string& id, WallTime time);
  Result<void> revoke(const std::string& id, WallTime time);

  Result<void> insert_session(const SessionRow& row);
  Result<std::optional<SessionRow>> session(const std::string& hash);
  Result<void> end_session(const std::string& hash);
  Result<void> remove_sessions_before(WallTime time);

 private:
  Result<std::optional<ApiKeyRow>> one_key(std::string_view column, const std::string& value);
  SqlConnection& sql_;
};

// Work that one process at a time does for all.
class LeaseTable {
 public:
  explicit LeaseTable(SqlConnection& sql) : sql_(sql) {}
  enum class Taken { yes, no };
  // Takes or extends the lease unless somebody else holds it at `now`.
  Result<Taken> take(const std::string& name, const std::string& owner, WallTime now,
                     WallTime until);

 private:
  SqlConnection& sql_;
};

}  // namespace fuse
