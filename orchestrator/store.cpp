#include "orchestrator/store.h"

#include <cassert>

#include "base/ids.h"
#include "orchestrator/migrations.h"

namespace fuse {

namespace {

constexpr int most_attempts = 6;
constexpr std::size_t key_size = 32;

bool worth_another_try(const Error& error) {
  const auto reason = error.details.find("reason");
  return error.code == ErrorCode::unavailable && reason != error.details.end() &&
         reason->second == "busy";
}

// A random UUID, version 4.
std::string new_uuid() {
  std::string hex = random_hex(16);
  hex[12] = '4';
  hex[16] = "89ab"[static_cast<unsigned char>(random_bytes(1)[0]) & 3U];
  for (const std::size_t at : {20U, 16U, 12U, 8U}) hex.insert(at, 1, '-');
  return hex;
}

}  // namespace

Result<std::unique_ptr<Store>> Store::open(std::unique_ptr<SqlConnection> sql, std::string key) {
  return open(std::make_unique<SqlPool>(std::move(sql)), std::move(key));
}

Result<std::unique_ptr<Store>> Store::open(std::unique_ptr<SqlPool> sql, std::string key) {
  if (key.size() != key_size) {
    return Error{ErrorCode::invalid_argument, "the key of the database must be 32 bytes"};
  }
  std::unique_ptr<Store> store(new Store(std::move(sql), std::move(key)));
  const auto lease = store->sql_->take();
  if (!lease) return lease.error();
  if (auto done = migrate(lease->sql(), migrations()); !done) return done.error();
  if (auto done = store->read_cluster(lease->sql()); !done) return done.error();
  return store;
}

Result<void> Store::read_cluster(SqlConnection& sql) {
  auto transaction = SqlTransaction::begin(sql);
  if (!transaction) return transaction.error();
  auto made = sql.execute(
      "INSERT INTO meta (name, value) VALUES ('cluster', $1) ON CONFLICT (name) DO NOTHING",
      {new_uuid()});
  if (!made) return made.error();
  const auto rows = sql.query("SELECT value FROM meta WHERE name = 'cluster'", {});
  if (!rows) return rows.error();
  assert(!rows->empty());
  cluster_ = rows->front().text("value");
  return transaction->commit();
}

Result<void> Store::run(const std::function<Result<void>(StoreTx&)>& body) {
  for (int attempt = 1;; ++attempt) {
    auto done = run_once(body);
    if (done || attempt == most_attempts || !worth_another_try(done.error())) return done;
  }
}

Result<void> Store::run_once(const std::function<Result<void>(StoreTx&)>& body) {
  std::set<std::string> touched;
  {
    const auto lease = sql_->take();
    if (!lease) return lease.error();
    StoreTx tx(lease->sql(), key_);
    auto transaction = SqlTransaction::begin(lease->sql());
    if (!transaction) return transaction.error();
    if (auto done = body(tx); !done) return done;
    if (auto done = transaction->commit(); !done) return done;
    touched = std::move(tx.touched);
  }
  if (!touched.empty()) wakeups_.notify(touched);
  return {};
}

}  // namespace fuse
