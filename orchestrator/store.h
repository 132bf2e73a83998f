#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "orchestrator/sql_pool.h"
#include "orchestrator/tables.h"
#include "orchestrator/wakeups.h"

namespace fuse {

// The tables within one transaction.
struct StoreTx {
  StoreTx(SqlConnection& sql, const std::string& key)
      : environments(sql),
        operations(sql),
        events(sql, touched),
        hosts(sql, key),
        bindings(sql),
        reservations(sql),
        deliveries(sql, key),
        credentials(sql),
        leases(sql) {}
  StoreTx(const StoreTx&) = delete;
  StoreTx& operator=(const StoreTx&) = delete;
  ~StoreTx() = default;

  std::set<std::string> touched{};  // environments that got an event
  EnvironmentTable environments;
  OperationTable operations;
  EventTable events;
  HostTable hosts;
  BindingTable bindings;
  ReservationTable reservations;
  DeliveryTable deliveries;
  CredentialTable credentials;
  LeaseTable leases;
};

// The database.  Safe from several threads.
class Store {
 public:
  // Brings the schema up to date.  `key` is 32 bytes.
  static Result<std::unique_ptr<Store>> open(std::unique_ptr<SqlPool> sql, std::string key);
  // Over one connection, that of a file.
  static Result<std::unique_ptr<Store>> open(std::unique_ptr<SqlConnection> sql, std::string key);

  // Runs `body` in a transaction: committed when it succeeds, undone when it
  // fails, and run again when the database says so; so it may run several times
  // and must touch its StoreTx and its own result only.  Whoever waits for an
  // environment that got an event is woken after the commit.
  Result<void> run(const std::function<Result<void>(StoreTx&)>& body);

  [[nodiscard]] Wakeups& wakeups() { return wakeups_; }
  // A uuid made with the database.
  [[nodiscard]] const std::string& cluster() const { return cluster_; }

 private:
  Store(std::unique_ptr<SqlPool> sql, std::string key)
      : sql_(std::move(sql)), key_(std::move(key)) {}
  Result<void> read_cluster(SqlConnection& sql);
  Result<void> run_once(const std::function<Result<void>(StoreTx&)>& body);

  std::unique_ptr<SqlPool> sql_;
  std::string key_;
  std::string cluster_;
  Wakeups wakeups_;
};

// Store::run for a body that yields a value.
template <class T, class F>
Result<T> transact(Store& store, F&& body) {
  std::optional<T> value;
  auto done = store.run([&](StoreTx& tx) -> Result<void> {
    Result<T> result = body(tx);
    if (!result) return result.error();
    value = *std::move(result);
    return {};
  });
  if (!done) return done.error();
  return *std::move(value);
}

}  // namespace fuse
