#include <random>

#include "base/ids.h"
#include "base/posix_host.h"
#include "base/text.h"
#include "guest/channel/client.h"
#include "tests/catch.h"
#include "tests/guest/lossy_port.h"
#include "tests/guest/random.h"

// What must hold when connections are cut at any byte: nothing is lost, doubled or
// mixed up of what goes by offset, and the next connection works.
namespace fuse {
namespace {

constexpr GuestLimits patient{.hello = std::chrono::seconds(60),
                              .silence = std::chrono::seconds(60)};

std::string keyed(std::uint32_t key, std::size_t size) {
  std::string out(size, '\0');
  for (std::size_t i = 0; i < size; ++i) out[i] = keyed_byte(key, i);
  return out;
}

// Calls `part` with one cut connection after another until it says it is done.
template <class F>
void with_cut_connections(LossyPort& port, RandomBytes& random, std::size_t most_to_host, F part) {
  while (true) {
    // Some are cut within the greeting, most far behind it.
    const bool early = random.up_to(4) == 0;
    const std::size_t to_host = early ? random.up_to(700) : 500 + random.up_to(most_to_host);
    const std::size_t to_guest = early ? random.up_to(400) : 300 + random.up_to(100'000);
    auto client = GuestClient::connect(port.connect(to_host, to_guest), patient);
    if (!client) {
      CHECK(client.error().code == ErrorCode::unreachable);
    } else if (part(**client)) {
      return;
    }
  }
}

TEST_CASE("a log that is read over connections cut at any byte is the job's output") {
  const std::uint32_t seed = std::random_device()();
  CAPTURE(seed);
  RandomBytes random(seed);
  LossyPort port;
  // Pieces of sync marks among it, as no job is likely to print them.
  std::string content = keyed(seed, 3'000'000);
  for (int i = 0; i < 200; ++i) {
    const std::string piece(sync_mark.substr(0, 1 + random.up_to(15)));
    content.replace(random.up_to(content.size() - 16), piece.size(), piece);
  }
  REQUIRE(PosixHost().write_file(port.root() / "content", content));
  const int code = 1 + static_cast<int>(random.up_to(254));
  const std::string script = cat("cat ", (port.root() / "content").native(), "; exit ", code);

  std::string log;
  bool acknowledge = false;
  std::optional<JobStatus> result;
  with_cut_connections(port, random, 300'000, [&](GuestClient& client) {
    // As a host does that was never told whether its start arrived.
    if (const auto started = client.start_job("key", {.script = script}); !started) {
      CHECK(started.error().code == ErrorCode::unreachable);
      return false;
    }
    acknowledge = !acknowledge;
    const auto range =
        client.read_log({.offset = log.size(), .follow = true, .acknowledge = acknowledge},
                        [&log](std::string_view bytes) {
                          log += bytes;
                          return true;
                        });
    if (!range) {
      CHECK(range.error().code == ErrorCode::unreachable);
      return false;
    }
    const auto job = client.job_status();
    if (!job) return false;
    result = job->status;
    return result->state == JobState::exited && log.size() == result->log_bytes;
  });
  CHECK((log == content));
  CHECK(result->exit_code == code);
  CHECK(result->reason == "exited");
}

TEST_CASE("an upload over connections cut at any byte is whole or not there") {
  const std::uint32_t seed = std::random_device()();
  CAPTURE(seed);
  RandomBytes random(seed);
  LossyPort port;
  const std::string bytes = keyed(seed, 60'000) + std::string(sync_mark);
  const fs::path file = port.root() / "d/f";
  int attempts = 0;
  with_cut_connections(port, random, 2000, [&](GuestClient& client) {
    ++attempts;
    const bool done = client.upload({.path = "/d/f", .bytes = bytes}).has_value();
    if (done || fs::exists(file)) CHECK((PosixHost().read_file(file).value() == bytes));
    return done;
  });
  // A connection that works all along sees none of what was begun before it.
  const auto client = GuestClient::connect(port.connect(), patient);
  REQUIRE(client);
  CHECK((*client)->exec({.argv = {"ls", "-A", (port.root() / "d").native()}}).value().out == "f\n");
  INFO(attempts << " attempts");
}

TEST_CASE("a command is answered on the connection that follows a flood") {
  LossyPort port;
  for (int round = 0; round < 10; ++round) {
    {
      auto client = GuestClient::connect(port.connect(200'000, 1U << 30U), patient);
      REQUIRE(client);
      // The port and the agent are full of its output when the connection ends.
      CHECK_FALSE((*client)->exec({.argv = {"yes"}}));
    }
    const std::string word = random_hex(8);
    auto client = GuestClient::connect(port.connect(), patient);
    REQUIRE(client);
    const auto result = (*client)->exec({.argv = {"echo", word}});
    REQUIRE(result);
    CHECK(result->out == word + "\n");
  }
}

TEST_CASE("what a lost connection had started is killed when the next one begins") {
  LossyPort port;
  const fs::path mark = port.root() / "pid";
  {
    auto client = GuestClient::connect(port.connect(), patient);
    REQUIRE(client);
    std::stop_source stop;
    std::thread interrupter([&] {
      while (!fs::exists(mark)) std::this_thread::sleep_for(std::chrono::milliseconds(2));
      (*client)->close();
    });
    CHECK_FALSE(
        (*client)->exec({.argv = {"sh", "-c",
                                  cat("echo $$ > ", mark.native(), ".new; mv ", mark.native(),
                                      ".new ", mark.native(), "; exec sleep 1000")}}));
    interrupter.join();
  }
  auto client = GuestClient::connect(port.connect(), patient);
  REQUIRE(client);
  const auto pid = std::string(trim(PosixHost().read_file(mark).value()));
  // Killed before the hello; it may take a moment to go.
  CHECK((*client)
            ->exec({.argv = {"sh", "-c", cat("while kill -0 ", pid, " 2>&-; do sleep 0.01; done")}})
            .value()
            .status.success());
}

}  // namespace
}  // namespace fuse
