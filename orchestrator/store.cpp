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
  if (key.size() != key_size) {
    return Error{ErrorCode::invalid_argument, "the key of the database must be 32 bytes"};
  }
  if (auto done = migrate(*sql, migrations()); !done) return done.error();
  std::unique_ptr<Store> store(new Store(std::move(sql), std::move(key)));
  if (auto done = store->read_cluster(); !done) return done.error();
  return store;
}

Result<void> Store::read_cluster() {
  auto transaction = SqlTransaction::begin(*sql_);
  if (!transaction) return transaction.error();
  auto made = sql_->execute(
      "INSERT INTO meta (name, value) VALUES ('cluster', $1) ON CONFLICT (name) DO NOTHING",
      {new_uuid()});
  if (!made) return made.error();
  const auto rows = sql_->query("SELECT value FROM meta WHERE name = 'cluster'", {});
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
  StoreTx tx(*sql_, key_);
  {
    const std::scoped_lock lock(mutex_);
    auto transaction = SqlTransaction::begin(*sql_);
    if (!transaction) return transaction.error();
    if (auto done = body(tx); !done) return done;
    if (auto done = transaction->commit(); !done) return done;
  }
  if (!tx.touched.empty()) wakeups_.notify(tx.touched);
  return {};
}

}  // namespace fuse
