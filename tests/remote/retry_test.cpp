#include "remote/retry.h"

#include <vector>

#include "tests/catch.h"

namespace fuse {

namespace {

// Time passes when somebody sleeps.
class SleepingClock final : public Clock {
 public:
  [[nodiscard]] WallTime wall() const override { return WallTime(now_.time_since_epoch()); }
  [[nodiscard]] SteadyTime steady() const override { return now_; }
  void sleep(std::chrono::nanoseconds time) override { now_ += time; }

 private:
  SteadyTime now_{std::chrono::seconds(1000)};
};

}  // namespace

TEST_CASE("pauses between attempts grow to two seconds, and start small after a success") {
  SleepingClock clock;
  Retry retry(clock, std::chrono::minutes(1));
  std::vector<std::int64_t> pauses;
  const auto attempt = [&] {
    const SteadyTime before = clock.steady();
    REQUIRE(retry.wait({}));
    pauses.push_back((clock.steady() - before) / std::chrono::milliseconds(1));
  };
  for (int i = 0; i < 7; ++i) attempt();
  retry.succeeded();
  attempt();
  CHECK(pauses == std::vector<std::int64_t>{100, 200, 400, 800, 1600, 2000, 2000, 100});
}

TEST_CASE("attempts end when nothing came for as long as one is patient") {
  SleepingClock clock;
  Retry retry(clock, std::chrono::seconds(10));
  int attempts = 0;
  while (retry.wait({})) ++attempts;
  CHECK(attempts == 9);
  CHECK(clock.steady().time_since_epoch() > std::chrono::seconds(1010));

  retry.succeeded();
  CHECK(retry.wait({}));
}

TEST_CASE("no attempt is made once it was told to stop") {
  SleepingClock clock;
  Retry retry(clock, std::chrono::seconds(10));
  std::stop_source stop;
  stop.request_stop();
  CHECK_FALSE(retry.wait(stop.get_token()));
}

}  // namespace fuse
