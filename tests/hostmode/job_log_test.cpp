#include "hostmode/job_log.h"

#include <sys/resource.h>

#include <csignal>
#include <future>
#include <thread>

#include "base/ids.h"
#include "base/posix_host.h"
#include "base/text.h"
#include "hostmode/job_book.h"
#include "hostmode/receipts.h"
#include "tests/catch.h"
#include "tests/hostmode/sample_record.h"
#include "tests/hostmode/test_dir.h"

namespace fuse {
namespace {

struct Taken {
  LogRange range{};
  std::string bytes{};
};

Taken take(JobLog& log, const LogQuery& query, std::stop_token stop = {}) {
  Taken taken;
  const auto range = log.read(
      query,
      [&](std::string_view bytes) {
        taken.bytes += bytes;
        return true;
      },
      std::move(stop));
  taken.range = range.value();  // also from other threads, where REQUIRE may not be used
  return taken;
}

TEST_CASE("a log is read from any offset, and its last lines by number") {
  const TestDir dir;
  const auto log = JobLog::open(dir.path() / "log").value();
  REQUIRE(log->append("one\ntwo\nthree\n"));

  CHECK(take(*log, {.offset = 4}).bytes == "two\nthree\n");
  CHECK(take(*log, {.offset = 14}).range.end == 14);
  CHECK(take(*log, {.offset = 99}).range.begin == 99);
  CHECK(take(*log, {.tail = 1}).bytes == "three\n");
  CHECK(take(*log, {.tail = 2}).range.begin == 4);
  CHECK(take(*log, {.tail = 0}).bytes.empty());
  CHECK(take(*log, {.tail = 9}).bytes == "one\ntwo\nthree\n");
  REQUIRE(log->append("fo"));
  CHECK(take(*log, {.tail = 1}).bytes == "fo");
  CHECK(take(*log, {.tail = 2}).bytes == "three\nfo");
}

TEST_CASE("the last lines are found across the pieces a file is read in") {
  const TestDir dir;
  const auto log = JobLog::open(dir.path() / "log").value();
  const std::string wide(70000, 'x');
  REQUIRE(log->append(cat("first\n", wide, "\n", wide, "\nlast\n")));
  CHECK(take(*log, {.tail = 2}).bytes == cat(wide, "\nlast\n"));
  CHECK(take(*log, {.tail = 3}).range.begin == 6);
}

TEST_CASE("followers get every byte as it comes and end with the log") {
  const TestDir dir;
  const auto log = JobLog::open(dir.path() / "log").value();
  auto follower = std::async(std::launch::async, [&] { return take(*log, {.follow = true}); });
  auto late = std::async(std::launch::async,
                         [&] { return take(*log, {.offset = 100000, .follow = true}); });
  std::string all;
  for (int i = 0; i < 300; ++i) {
    const std::string piece = random_bytes(static_cast<std::size_t>(1 + i * 7 % 4096));
    REQUIRE(log->append(piece));
    all += piece;
  }
  log->finish();

  const Taken followed = follower.get();
  CHECK(followed.range.begin == 0);
  CHECK(followed.range.end == all.size());
  CHECK(followed.bytes == all);
  CHECK(late.get().bytes == all.substr(100000));
}

TEST_CASE("a follower sees a line before the next one is written") {
  const TestDir dir;
  const auto log = JobLog::open(dir.path() / "log").value();
  std::promise<void> seen;
  std::string bytes;
  std::thread follower([&] {
    (void)log->read({.follow = true},
                    [&](std::string_view piece) {
                      bytes += piece;
                      if (bytes == "first\n") seen.set_value();
                      return true;
                    },
                    {});
  });
  REQUIRE(log->append("first\n"));
  seen.get_future().wait();  // would wait for ever if it needed more
  REQUIRE(log->append("second\n"));
  log->finish();
  follower.join();
  CHECK(bytes == "first\nsecond\n");
}

TEST_CASE("a follower that is stopped or has enough leaves") {
  const TestDir dir;
  const auto log = JobLog::open(dir.path() / "log").value();
  REQUIRE(log->append("abc"));
  std::stop_source stop;
  auto follower = std::async(std::launch::async,
                             [&] { return take(*log, {.follow = true}, stop.get_token()); });
  stop.request_stop();
  CHECK(follower.get().range.begin == 0);

  const auto range = log->read({.follow = true}, [](std::string_view) { return false; }, {});
  CHECK(range.value().end == 3);
}

TEST_CASE("a log goes on where its file ends, and is read on when the file is moved") {
  const TestDir dir;
  REQUIRE(JobLog::open(dir.path() / "log").value()->append("one\n"));
  const auto log = JobLog::open(dir.path() / "log").value();
  CHECK(log->size() == 4);
  fs::rename(dir.path() / "log", dir.path() / "moved");
  REQUIRE(log->append("two\n"));
  log->finish();
  CHECK(take(*log, {.follow = true}).bytes == "one\ntwo\n");
  CHECK(take(*JobLog::open_finished(dir.path() / "moved").value(), {.follow = true}).bytes ==
        "one\ntwo\n");
  CHECK(take(*JobLog::open_finished(dir.path() / "none").value(), {.follow = true}).bytes.empty());
}

// No file of this process may grow beyond so many bytes while it lives.
class FileSizeLimit {
 public:
  explicit FileSizeLimit(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    ::getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{.rlim_cur = bytes, .rlim_max = before_.rlim_max};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  }
  FileSizeLimit(const FileSizeLimit&) = delete;
  FileSizeLimit& operator=(const FileSizeLimit&) = delete;
  ~FileSizeLimit() {
    ::setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  rlimit before_{};
  void (*handler_)(int);
};

TEST_CASE("what does not fit on the disk is not taken at all, and can come again") {
  const TestDir dir;
  const auto log = JobLog::open(dir.path() / "log").value();
  const std::string piece(5000, 'x');
  REQUIRE(log->append(piece));
  {
    const FileSizeLimit full(8000);
    CHECK_FALSE(log->append(piece));
  }
  CHECK(log->size() == 5000);
  CHECK(fs::file_size(dir.path() / "log") == 5000);
  REQUIRE(log->append("rest"));
  log->finish();
  CHECK(take(*log, {.follow = true}).bytes == piece + "rest");
}

TEST_CASE("a job's state is on disk before it is told, and a final one stays") {
  const TestDir dir;
  PosixHost host;
  const auto book = JobBook::open(host, dir.path()).value();
  CHECK_FALSE(book->status());
  REQUIRE(book->begin());
  CHECK(read_job(host, dir.path()).value().value().state == JobState::pending);
  CHECK(book->begin().error().code == ErrorCode::conflict);

  JobStatus exited;
  exited.state = JobState::exited;
  exited.exit_code = 7;
  exited.log_bytes = 12;
  REQUIRE(book->update(exited));
  REQUIRE(book->update(lost_job(exited)));

  CHECK(book->status().value().state == JobState::exited);
  const auto again = JobBook::open(host, dir.path()).value();
  CHECK(again->status().value().exit_code == 7);
  CHECK(again->status().value().log_bytes == 12);
  CHECK(again->begin().error().code == ErrorCode::conflict);
}

TEST_CASE("a job that the guest never got can be started again") {
  const TestDir dir;
  PosixHost host;
  const auto book = JobBook::open(host, dir.path()).value();
  REQUIRE(book->begin());
  REQUIRE(book->forget());
  CHECK_FALSE(fs::exists(dir.path() / "job.json"));
  CHECK(book->begin());
}

TEST_CASE("a damaged job record is an error, not a guess") {
  const TestDir dir;
  PosixHost host;
  for (const std::string_view text :
       {"", "{}", R"({"schema": 2, "job": {"state": "exited"}})", R"({"schema": 1})"}) {
    write_text(dir.path() / "job.json", text);
    INFO(text);
    CHECK_FALSE(read_job(host, dir.path()));
  }
}

TEST_CASE("receipts go oldest first, by age and then by size") {
  const WallTime now = parse_rfc3339("2026-11-30T12:00:00Z").value();
  const auto aged = [&](const std::string& uid, int hours, std::uint64_t bytes) {
    return ReceiptEntry{
        .uid = uid, .vm_id = "v", .ended = now - std::chrono::hours(hours), .bytes = bytes};
  };
  const ReceiptLimits limits{.age = std::chrono::hours(24), .bytes = 100};
  using Uids = std::vector<std::string>;

  CHECK(expired_receipts({aged("a", 25, 1), aged("b", 24, 1), aged("c", 1, 1)}, now, limits) ==
        Uids{"a"});
  CHECK(expired_receipts({aged("c", 1, 60), aged("a", 9, 60), aged("b", 5, 40)}, now, limits) ==
        Uids{"a"});
  CHECK(expired_receipts({aged("a", 1, 101)}, now, limits) == Uids{"a"});
  CHECK(expired_receipts({}, now, limits).empty());
}

// Time as the test says.
struct StillClock final : Clock {
  WallTime now = parse_rfc3339("2026-11-30T12:00:00Z").value();
  [[nodiscard]] WallTime wall() const override { return now; }
  [[nodiscard]] SteadyTime steady() const override { return {}; }
  void sleep(std::chrono::nanoseconds) override {}
};

TEST_CASE("a receipt keeps record, result and log, also when keeping it was interrupted") {
  const TestDir dir;
  PosixHost host;
  StillClock clock;
  NullLog log;
  const StatePaths paths(dir.path());
  VmRecord record = sample_record();
  record.state = VmState::ended;
  record.ended_at = to_rfc3339(clock.now);
  write_text(paths.vm(record.uid, vm_file::job_log), "said\n");
  JobStatus exited;
  exited.state = JobState::exited;
  exited.exit_code = 3;
  REQUIRE(write_job(host, paths.vm(record.uid), exited));
  // As if the move had got half way.
  fs::create_directories(paths.receipt(record.uid));
  fs::rename(paths.vm(record.uid, vm_file::job_log), paths.receipt(record.uid, vm_file::job_log));

  Receipts receipts(host, clock, log, paths, {});
  REQUIRE(receipts.load());
  CHECK_FALSE(receipts.find(record.uid));
  REQUIRE(receipts.keep(record));
  REQUIRE(receipts.keep(record));

  Receipts reopened(host, clock, log, paths, {});
  REQUIRE(reopened.load());
  CHECK(reopened.find("Fuse_Train").value() == record.uid);
  CHECK(reopened.find(record.uid).value() == record.uid);
  CHECK_FALSE(reopened.find("fuse-other"));
  CHECK(reopened.job(record.uid).value().value().exit_code == 3);
  CHECK(take(*reopened.log(record.uid).value(), {}).bytes == "said\n");

  clock.now += std::chrono::hours(24 * 7 + 1);
  reopened.prune();
  CHECK_FALSE(reopened.find(record.uid));
  CHECK_FALSE(fs::exists(paths.receipt(record.uid)));
}

TEST_CASE("a vm_id means the receipt of its newest incarnation") {
  const TestDir dir;
  PosixHost host;
  StillClock clock;
  NullLog log;
  const StatePaths paths(dir.path());
  Receipts receipts(host, clock, log, paths, {});
  VmRecord record = sample_record();
  record.state = VmState::ended;
  for (const auto& [uid, ended] :
       {std::pair("01ARZ3NDEKTSV4RRFFQ69G5FA1", "2026-11-30T11:00:00Z"),
        std::pair("01ARZ3NDEKTSV4RRFFQ69G5FA2", "2026-11-30T10:00:00Z")}) {
    record.uid = uid;
    record.ended_at = ended;
    fs::create_directories(paths.vm(record.uid));
    REQUIRE(receipts.keep(record));
  }
  CHECK(receipts.find(record.vm_id).value() == "01ARZ3NDEKTSV4RRFFQ69G5FA1");
}

}  // namespace
}  // namespace fuse
