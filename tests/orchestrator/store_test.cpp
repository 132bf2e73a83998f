#include "orchestrator/store.h"

#include <unistd.h>

#include <array>
#include <filesystem>

#include "base/ids.h"
#include "base/text.h"
#include "orchestrator/migrations.h"
#include "tests/orchestrator/engine.h"

namespace fuse {
namespace {

// A folder that is gone after the test.
struct TempDir {
  fs::path path = fs::temp_directory_path() / cat("fuse-store-", random_hex(8));
  TempDir() { fs::create_directories(path); }
  ~TempDir() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
  TempDir(const TempDir&) = delete;
  TempDir& operator=(const TempDir&) = delete;
};

EnvironmentRow row_of(const std::string& task, const std::string& uid) {
  EnvironmentRow row;
  row.environment = {.id = "fuse-" + task, .uid = uid, .task_id = task, .host_id = "local"};
  return row;
}

Result<void> insert(Store& store, const EnvironmentRow& row) {
  return store.run([&](StoreTx& tx) { return tx.environments.insert(row); });
}

TEST_CASE("parameters are bound by their number, not by where they appear first") {
  const auto sql = must(open_sqlite({}));
  const auto rows = must(sql->query("SELECT $2 || $1 || $2 AS text", {"a", "b"}));
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].text("text") == "bab");
}

TEST_CASE("values come back as they went in") {
  const auto sql = must(open_sqlite({}));
  const std::string bytes("\0\xff z", 4);
  const auto rows = must(sql->query(
      "SELECT $1 AS n, $2 AS t, $3 AS b, $4 AS nil, $5 AS empty",
      {std::int64_t{-5'000'000'000}, "it's", SqlBlob{bytes}, std::monostate(), SqlBlob{}}));
  CHECK(rows[0].integer("n") == -5'000'000'000);
  CHECK(rows[0].text("t") == "it's");
  CHECK(rows[0].bytes("b") == bytes);
  CHECK(rows[0].null("nil"));
  CHECK_FALSE(rows[0].null("empty"));
}

TEST_CASE("an environment comes back from the database as it was") {
  const auto store = memory_store();
  EnvironmentRow row = row_of("full", "01A");
  row.environment.state = EnvironmentState::running;
  row.environment.url = "qemu://x";
  row.environment.spec.labels = {{"team", "ml"}};
  row.environment.endpoints = {{.as = "http", .url = "h:1", .port = 80, .host_port = 1}};
  row.environment.job = JobStatus{.state = JobState::exited, .exit_code = 0};
  row.environment.error = "odd \xff byte";
  row.created = WallTime(std::chrono::nanoseconds(123));
  row.vm_id = "fuse-full";
  row.final_state = EnvironmentState::failed;
  row.error_code = ErrorCode::conflict;
  row.on_exit = OnExit::destroy;
  row.settle_seconds = 9;
  row.has_job = true;
  row.probes_health = true;
  row.step_names = {"a", "b \"c\""};
  must(insert(*store, row));
  const auto back = must(transact<std::optional<EnvironmentRow>>(
      *store, [&](StoreTx& tx) { return tx.environments.by_uid("01A"); }));
  REQUIRE(back.has_value());
  CHECK(back->environment.url == row.environment.url);
  CHECK(back->environment.spec.labels == row.environment.spec.labels);
  CHECK(back->environment.endpoints.at(0).host_port == 1);
  CHECK(back->environment.job->exit_code == 0);
  CHECK(back->environment.error == "odd \xef\xbf\xbd byte");
  CHECK(back->created == row.created);
  CHECK_FALSE(back->ended.has_value());
  CHECK(back->vm_id == row.vm_id);
  CHECK(back->final_state == row.final_state);
  CHECK(back->error_code == row.error_code);
  CHECK(back->on_exit == row.on_exit);
  CHECK(back->settle_seconds == 9);
  CHECK(back->has_job);
  CHECK(back->probes_health);
  CHECK(back->step_names == row.step_names);
}

TEST_CASE("a task id is held by one live environment, and by any number that have ended") {
  const auto store = memory_store();
  must(insert(*store, row_of("t", "01A")));
  const auto second = insert(*store, row_of("t", "01B"));
  REQUIRE_FALSE(second.has_value());
  CHECK(second.error().details.at("reason") == "unique");
  must(store->run([](StoreTx& tx) -> Result<void> {
    auto row = tx.environments.by_uid("01A");
    (*row)->ended = WallTime(std::chrono::seconds(1));
    return tx.environments.update(**row);
  }));
  CHECK(insert(*store, row_of("t", "01B")).has_value());
}

TEST_CASE("a change made on an old look at an environment is refused") {
  const auto store = memory_store();
  must(insert(*store, row_of("t", "01A")));
  auto done = store->run([](StoreTx& tx) -> Result<void> {
    auto first = tx.environments.by_uid("01A");
    auto second = tx.environments.by_uid("01A");
    if (auto changed = tx.environments.update(**first); !changed) return changed;
    return tx.environments.update(**second);
  });
  REQUIRE_FALSE(done.has_value());
  CHECK(done.error().details.at("reason") == "busy");
}

TEST_CASE("a transaction that fails leaves nothing behind") {
  const auto store = memory_store();
  auto done = store->run([](StoreTx& tx) -> Result<void> {
    if (auto inserted = tx.environments.insert(row_of("t", "01A")); !inserted) return inserted;
    return Error{ErrorCode::internal, "no"};
  });
  CHECK_FALSE(done.has_value());
  CHECK(insert(*store, row_of("t", "01A")).has_value());
}

TEST_CASE("a device is bound once") {
  const auto store = memory_store();
  must(insert(*store, row_of("a", "01A")));
  must(insert(*store, row_of("b", "01B")));
  const auto bind = [&](const std::string& uid) {
    return store->run([&](StoreTx& tx) {
      return tx.bindings.insert({.environment_uid = uid, .host_id = "h", .device_uuid = "GPU-1"});
    });
  };
  CHECK(bind("01A").has_value());
  CHECK(bind("01B").error().details.at("reason") == "unique");
}

TEST_CASE("events are numbered within their environment and wake who waits for it") {
  const auto store = memory_store();
  const auto row = row_of("t", "01A");
  must(insert(*store, row));
  Wakeups::Subscription waiting(store->wakeups(), "01A");
  for (const auto* kind : {"state", "step", "job"}) {
    must(store->run([&](StoreTx& tx) {
      return tx.events.append(row.environment, EnvironmentEvent{.event = kind});
    }));
  }
  waiting.wait(std::chrono::minutes(10), {});  // returns at once
  const auto all = must(transact<std::vector<EventRow>>(
      *store, [](StoreTx& tx) { return tx.events.after("01A", 0, true); }));
  REQUIRE(all.size() == 3);
  CHECK(all[2].sequence == 3);
  CHECK(all[0].event.id.size() == 32);
  CHECK(all[0].event.vm_id == "fuse-t");
  const auto usual = must(transact<std::vector<EventRow>>(
      *store, [](StoreTx& tx) { return tx.events.after("01A", 1, false); }));
  REQUIRE(usual.size() == 1);
  CHECK(usual[0].event.event == "step");
}

TEST_CASE("a request and its secrets are unreadable in the file, and gone once erased") {
  const TempDir dir;
  const fs::path file = dir.path / "fuse.db";
  const auto store = must(Store::open(must(open_sqlite(file)), test_key));
  must(insert(*store, row_of("t", "01A")));
  CreateEnvironmentRequest request{.task_id = "t"};
  request.secrets = {{"token", "hush-hush-hush"}};
  request.files = {{"/a", "bm90IGZvciB5b3VyIGV5ZXM="}};
  must(store->run([&](StoreTx& tx) { return tx.deliveries.insert("01A", request); }));
  const auto raw = must(open_sqlite(file));
  const auto rows =
      must(raw->query("SELECT sealed FROM secrets UNION ALL SELECT sealed FROM requests", {}));
  REQUIRE(rows.size() == 2);
  for (const SqlRow& row : rows) {
    CHECK(row.bytes("sealed").find("hush") == std::string::npos);
    CHECK(row.bytes("sealed").find("bm90") == std::string::npos);
  }
  const auto back = must(transact<std::optional<CreateEnvironmentRequest>>(
      *store, [](StoreTx& tx) { return tx.deliveries.read("01A"); }));
  CHECK(back->secrets == request.secrets);
  CHECK(back->files == request.files);
  must(store->run([](StoreTx& tx) { return tx.deliveries.erase("01A"); }));
  CHECK(must(raw->query("SELECT sealed FROM secrets UNION ALL SELECT sealed FROM requests", {}))
            .empty());
  const auto mode = fs::status(file).permissions();
  CHECK((mode & (fs::perms::group_all | fs::perms::others_all)) == fs::perms::none);
}

TEST_CASE("a sealed secret does not open in another environment's row") {
  const auto store = memory_store();
  must(insert(*store, row_of("a", "01A")));
  must(insert(*store, row_of("b", "01B")));
  CreateEnvironmentRequest request{.task_id = "a", .secrets = {{"k", "value"}}};
  auto done = transact<std::optional<CreateEnvironmentRequest>>(
      *store, [&](StoreTx& tx) -> Result<std::optional<CreateEnvironmentRequest>> {
        if (auto kept = tx.deliveries.insert("01A", request); !kept) return kept.error();
        return tx.deliveries.read("01B");
      });
  CHECK_FALSE(must(std::move(done)).has_value());
}

TEST_CASE("the cluster's id is made once for a database") {
  const TempDir dir;
  const std::string first =
      must(Store::open(must(open_sqlite(dir.path / "db")), test_key))->cluster();
  CHECK(first.size() == 36);
  CHECK(must(Store::open(must(open_sqlite(dir.path / "db")), test_key))->cluster() == first);
}

TEST_CASE("an operation is leased to one worker until the lease is over") {
  const auto store = memory_store();
  must(insert(*store, row_of("t", "01A")));
  const auto at = [](int seconds) { return WallTime(std::chrono::seconds(seconds)); };
  must(store->run([&](StoreTx& tx) {
    return tx.operations.insert(
        {.id = "op", .environment_uid = "01A", .step = "s", .next_try = at(10)});
  }));
  const auto claim = [&](const std::string& owner, int now) {
    return must(transact<std::optional<OperationRow>>(
                    *store,
                    [&](StoreTx& tx) { return tx.operations.claim(owner, at(now), at(now + 60)); }))
        .has_value();
  };
  CHECK_FALSE(claim("a", 9));
  CHECK(claim("a", 10));
  CHECK_FALSE(claim("b", 69));
  const auto renewed = must(transact<std::vector<std::string>>(
      *store, [&](StoreTx& tx) { return tx.operations.renew("a", at(100)); }));
  CHECK(renewed == std::vector<std::string>{"op"});
  CHECK_FALSE(claim("b", 99));
  CHECK(claim("b", 100));
}

constexpr std::array<std::string_view, 1> step_one = {"CREATE TABLE a (n BIGINT, b {blob})"};
constexpr std::array<std::string_view, 2> step_two = {"ALTER TABLE a ADD COLUMN m BIGINT",
                                                      "INSERT INTO a (n, m) VALUES (2, 2)"};
constexpr std::array<std::string_view, 2> bad_step = {"INSERT INTO a (n) VALUES (3)",
                                                      "CREATE TABLE a (n BIGINT)"};

TEST_CASE("an older database is copied and brought up to date, a newer one refused") {
  const TempDir dir;
  const fs::path file = dir.path / "fuse.db";
  const auto sql = must(open_sqlite(file));
  const std::array<Migration, 2> steps = {{{1, step_one}, {2, step_two}}};
  must(migrate(*sql, std::span(steps).first(1)));
  must(sql->execute("INSERT INTO a (n) VALUES (1)", {}));
  CHECK_FALSE(fs::exists(dir.path / "fuse.db.v1"));
  must(migrate(*sql, steps));
  CHECK(must(sql->query("SELECT n FROM a", {})).size() == 2);
  CHECK(must(must(open_sqlite(dir.path / "fuse.db.v1"))->query("SELECT n FROM a", {})).size() == 1);
  const auto older = migrate(*sql, std::span(steps).first(1));
  REQUIRE_FALSE(older.has_value());
  CHECK(older.error().code == ErrorCode::conflict);
  CHECK(older.error().message ==
        "the database has schema version 2, this program knows up to version 1: use a newer fuse");
}

TEST_CASE("what live environments take is set aside when their database becomes newer") {
  const auto sql = open_test_sql();
  must(migrate(*sql, migrations().first(2)));
  EnvironmentTable environments(*sql);
  EnvironmentRow row = row_of("one", "01A");
  row.environment.spec = {.cpus = 2, .ram_mb = 512, .storage_gb = 3, .gpus = 1};
  must(environments.insert(row));
  row = row_of("two", "01B");
  row.environment.spec = {.cpus = 4, .ram_mb = 100, .gpus = 2};
  row.environment.spec.gpu_profile = "1g.10gb";
  must(environments.insert(row));
  row = row_of("over", "01C");
  row.environment.spec = {.cpus = 64};
  row.ended = WallTime();
  must(environments.insert(row));

  must(migrate(*sql, migrations()));
  ReservationTable reservations(*sql);
  auto sums = must(reservations.on_host("local"));
  std::ranges::sort(sums, {}, &ReservationSum::gpu_profile);
  REQUIRE(sums.size() == 2);
  CHECK(sums[0].cpus == 2);
  CHECK(sums[0].ram_mb == 512);
  CHECK(sums[0].storage_gb == 3);
  CHECK(sums[0].gpus == 1);
  CHECK(sums[0].environments == 1);
  CHECK(sums[1].gpu_profile == "1g.10gb");
  CHECK(sums[1].gpus == 2);
  CHECK(must(reservations.on_host("elsewhere")).empty());
}

TEST_CASE("a migration that fails changes nothing") {
  const auto sql = must(open_sqlite({}));
  const std::array<Migration, 2> steps = {{{1, step_one}, {2, bad_step}}};
  must(migrate(*sql, std::span(steps).first(1)));
  CHECK_FALSE(migrate(*sql, steps).has_value());
  CHECK(must(sql->query("SELECT n FROM a", {})).empty());
  CHECK(
      must(sql->query("SELECT value FROM meta WHERE name = 'schema'", {})).front().text("value") ==
      "1");
}

}  // namespace
}  // namespace fuse
