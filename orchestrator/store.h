#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>

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
  DeliveryTable deliveries;
  CredentialTable credentials;
  LeaseTable leases;
};

// The database.  Safe from several threads; transactions take turns.
class Store {
 public:
  // Brings the schema up to date.  `key` is 32 bytes.
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
  Store(std::unique_ptr<SqlConnection> sql, std::string key)
      : sql_(std::move(sql)), key_(std::move(key)) {}
  Result<void> read_cluster();
  Result<void> run_once(const std::function<Result<void>(StoreTx&)>& body);

  std::mutex mutex_;
  std::unique_ptr<SqlConnection> sql_;  // by mutex_
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
