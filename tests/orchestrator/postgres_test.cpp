#include "orchestrator/postgres.h"

#include <thread>

#include "base/text.h"
#include "orchestrator/migrations.h"
#include "tests/orchestrator/engine.h"

namespace fuse {
namespace {

TEST_CASE("the place of a database is told without its password") {
  CHECK(must(postgres_place("postgresql://me:secret@db.example.com:6432/fuse")) ==
        "db.example.com:6432/fuse");
  CHECK(must(postgres_place("host=/run/pg dbname=x user=me password=secret")) == "/run/pg/x");
  const auto bad = postgres_place("mysql://me:secret@db/fuse");
  REQUIRE_FALSE(bad);
  CHECK(bad.error().code == ErrorCode::invalid_argument);
  CHECK(bad.error().message.find("secret") == std::string::npos);
}

TEST_CASE("a server that is not there is unavailable, by its place") {
  const auto sql = open_postgres("postgresql://me:secret@127.0.0.1:1/fuse");
  REQUIRE_FALSE(sql);
  CHECK(sql.error().code == ErrorCode::unavailable);
  CHECK(sql.error().details.at("reason") == "store");
  CHECK(sql.error().message.find("127.0.0.1:1/fuse") != std::string::npos);
  CHECK(sql.error().message.find("secret") == std::string::npos);
}

// The rest needs a server: without one, SQLite takes its place.
TEST_CASE("values of every kind come back from a table as they went in") {
  const auto sql = open_test_sql();
  must(sql->execute(cat("CREATE TABLE t (n BIGINT, s TEXT, b ", sql->blob_type(), ", nil TEXT)"),
                    {}));
  const std::string bytes("\0\xff'\\ z", 6);
  CHECK(must(sql->execute("INSERT INTO t (n, s, b, nil) VALUES ($1, $2, $3, $4)",
                          {std::int64_t{-5'000'000'000}, "it's \xc3\xa4", SqlBlob{bytes},
                           std::monostate()})) == 1);
  const auto rows = must(sql->query("SELECT n, s, b, nil FROM t WHERE s = $2 OR n = $1",
                                    {std::int64_t{1}, "it's \xc3\xa4"}));
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].integer("n") == -5'000'000'000);
  CHECK(rows[0].text("s") == "it's \xc3\xa4");
  CHECK(rows[0].bytes("b") == bytes);
  CHECK(rows[0].null("nil"));
}

TEST_CASE("a row that is there already is told from other failures") {
  const auto sql = open_test_sql();
  must(sql->execute("CREATE TABLE t (n BIGINT PRIMARY KEY)", {}));
  must(sql->execute("INSERT INTO t (n) VALUES (1)", {}));
  const auto twice = sql->execute("INSERT INTO t (n) VALUES (1)", {});
  REQUIRE_FALSE(twice);
  CHECK(twice.error().details.at("reason") == "unique");
  const auto wrong = sql->query("SELECT nothing FROM t", {});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().code == ErrorCode::internal);
  CHECK(wrong.error().message.find("nothing") != std::string::npos);
}

TEST_CASE("replicas that start at once bring an empty database up to date together") {
  if (!on_postgres()) return;
  const OpenSql open = test_database();
  std::vector<std::jthread> replicas;
  for (int i = 0; i < 4; ++i) {
    replicas.emplace_back([&] {
      const auto sql = must(open());
      must(migrate(*sql, migrations()));
    });
  }
  replicas.clear();
  const auto sql = must(open());
  CHECK(must(sql->query("SELECT id FROM environments", {})).empty());
}

TEST_CASE("a connection that the server ends is replaced by another") {
  if (!on_postgres()) return;
  const OpenSql open = test_database();
  const auto store = must(Store::open(std::make_unique<SqlPool>(open, 2), test_key));
  const auto admin = must(open());
  must(
      admin->execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE "
                     "pid <> pg_backend_pid() AND application_name = 'fuse'",
                     {}));
  const auto look = [&] {
    return store->run([](StoreTx& tx) -> Result<void> {
      const auto marks = tx.hosts.marks();
      return marks ? Result<void>() : marks.error();
    });
  };
  const auto broken = look();
  if (!broken) CHECK(broken.error().details.at("reason") == "store");
  must(look());
}

}  // namespace
}  // namespace fuse
