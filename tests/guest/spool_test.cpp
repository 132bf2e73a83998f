#include "guest/spool.h"

#include "base/posix_host.h"
#include "guest/channel/frame.h"
#include "tests/catch.h"
#include "tests/guest/random.h"
#include "tests/guest/temp_dir.h"

namespace fuse {
namespace {

constexpr SpoolLimits small{.most_unacknowledged = 1000, .segment_size = 100};

std::string content(std::uint64_t from, std::uint64_t to) {
  std::string out;
  for (std::uint64_t i = from; i < to; ++i) out += keyed_byte(5, i);
  return out;
}

std::string read_all(Spool& spool, std::uint64_t from, std::size_t at_once) {
  std::string out;
  while (from + out.size() < spool.end()) {
    const auto bytes = spool.read(from + out.size(), at_once);
    REQUIRE(bytes);
    REQUIRE_FALSE(bytes->empty());
    out += *bytes;
  }
  return out;
}

std::size_t files_in(const fs::path& dir) {
  return PosixHost().list_dir(dir).value().size();
}

TEST_CASE("what goes into a spool comes out of it, from any offset") {
  const TempDir dir;
  auto spool = *Spool::create(dir.path() / "log", small);
  RandomBytes random(3);
  std::uint64_t end = 0;
  while (end < 5000) {
    const std::uint64_t next = end + random.up_to(250);
    spool->append(content(end, next));
    end = next;
    REQUIRE(spool->end() == end);
  }
  for (int round = 0; round < 50; ++round) {
    const std::uint64_t from = random.up_to(end);
    CHECK(read_all(*spool, from, 1 + random.up_to(300)) == content(from, end));
  }
  CHECK_FALSE(spool->read(end + 1, 10));
}

TEST_CASE("acknowledged segments go, the newest stays, and offsets remain") {
  const TempDir dir;
  auto spool = *Spool::create(dir.path() / "log", small);
  spool->append(content(0, 750));
  CHECK(files_in(dir.path() / "log") == 8);
  spool->acknowledge(399);
  CHECK(spool->begin() == 300);
  CHECK(files_in(dir.path() / "log") == 5);
  CHECK(read_all(*spool, 300, 64) == content(300, 750));
  CHECK_FALSE(spool->read(299, 10));
  spool->acknowledge(750);
  CHECK(files_in(dir.path() / "log") == 1);
  spool->append(content(750, 760));
  CHECK(read_all(*spool, 700, 64) == content(700, 760));
  // Never back, never beyond.
  spool->acknowledge(10);
  spool->acknowledge(100000);
  spool->append(content(760, 900));
  CHECK(read_all(*spool, 760, 64) == content(760, 900));
}

TEST_CASE("there is no room beyond the limit until something is acknowledged") {
  const TempDir dir;
  auto spool = *Spool::create(dir.path() / "log", small);
  spool->append(content(0, 999));
  CHECK(spool->has_room());
  spool->append(content(999, 1000));
  CHECK_FALSE(spool->has_room());
  // Less than a segment is enough, though no file goes.
  spool->acknowledge(1);
  CHECK(spool->has_room());
}

TEST_CASE("a limit below a segment does not block for good") {
  const TempDir dir;
  auto spool = *Spool::create(dir.path() / "log", {.most_unacknowledged = 50, .segment_size = 100});
  std::uint64_t end = 0;
  for (int round = 0; round < 20; ++round) {
    REQUIRE(spool->has_room());
    spool->append(content(end, end + 50));
    end += 50;
    CHECK_FALSE(spool->has_room());
    spool->acknowledge(end);
  }
  CHECK(spool->end() == 1000);
}

TEST_CASE("a spool that is opened again goes on where it was") {
  const TempDir dir;
  for (const std::uint64_t end : {0U, 1U, 99U, 100U, 101U, 300U}) {
    {
      auto spool = *Spool::create(dir.path() / "log", small);
      spool->append(content(0, end));
      spool->acknowledge(end);
    }
    auto spool = *Spool::open(dir.path() / "log", small);
    REQUIRE(spool->end() == end);
    spool->append(content(end, end + 150));
    CHECK(read_all(*spool, end, 40) == content(end, end + 150));
  }
}

TEST_CASE("what the disk does not take waits in memory and is readable there") {
  const TempDir dir;
  auto spool = *Spool::create(dir.path() / "log", small);
  spool->append(content(0, 100));
  // A folder in the place of the next segment stands for a full disk.
  const fs::path blocked = dir.path() / "log" / "log-000000000001";
  fs::create_directory(blocked);
  spool->append(content(100, 180));
  spool->append(content(180, 230));
  CHECK_FALSE(spool->has_room());
  CHECK(spool->is_behind());
  CHECK(spool->end() == 230);
  CHECK(read_all(*spool, 50, 60) == content(50, 230));
  spool->flush();
  CHECK(spool->is_behind());
  fs::remove(blocked);
  spool->flush();
  CHECK_FALSE(spool->is_behind());
  CHECK(spool->has_room());
  CHECK(read_all(*spool, 0, 60) == content(0, 230));
}

TEST_CASE("what a host takes from memory while the disk is full makes room") {
  const TempDir dir;
  auto spool = *Spool::create(dir.path() / "log", small);
  spool->append(content(0, 100));
  const fs::path blocked = dir.path() / "log" / "log-000000000001";
  fs::create_directory(blocked);
  spool->append(content(100, 180));
  spool->acknowledge(150);
  CHECK_FALSE(spool->has_room());
  CHECK(read_all(*spool, 150, 60) == content(150, 180));
  spool->acknowledge(180);
  CHECK(spool->has_room());
  CHECK(spool->begin() == 180);
  CHECK_FALSE(spool->read(150, 10));
  // Still full, and so on.
  spool->append(content(180, 250));
  CHECK_FALSE(spool->has_room());
  spool->acknowledge(250);
  CHECK(spool->has_room());
  // With room again, each byte is at its place.
  fs::remove(blocked);
  spool->append(content(250, 420));
  CHECK_FALSE(spool->is_behind());
  CHECK(read_all(*spool, 250, 60) == content(250, 420));
  spool.reset();
  spool = *Spool::open(dir.path() / "log", small);
  CHECK(spool->end() == 420);
}

}  // namespace
}  // namespace fuse
