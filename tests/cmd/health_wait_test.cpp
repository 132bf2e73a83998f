#include "cmd/health_wait.h"

#include "base/text.h"
#include "tests/cmd/world.h"
#include "tests/fakes/fake_clock.h"

namespace fuse::cmd {

namespace {

using std::chrono::minutes;
using std::chrono::seconds;

Environment with_health(const std::string& state, std::int32_t failures = 0,
                        const std::string& message = "") {
  Environment environment{.id = "fuse-web", .uid = "01UID", .state = EnvironmentState::running};
  environment.health = Health{
      .state = state, .since = "2026-11-30T10:00:00Z", .failures = failures, .message = message};
  return environment;
}

// "" goes on, "done", or the error.
std::string verdict(const Environment& environment, std::chrono::nanoseconds waited = {}) {
  const auto over = health_verdict(environment, waited, minutes(2));
  if (!over) return "";
  return *over ? "done" : over->error().message;
}

constexpr const char* fusefile =
    "version: 1\nname: web\nimage: micro\nrun: ./serve\n"
    "healthcheck: {http: {port: 8080}}\n";

struct HealthWorld : World {
  explicit HealthWorld(const std::string& state) {
    folder.write("Fusefile", fusefile);
    environments.story = {state_event(EnvironmentState::provisioning),
                          state_event(EnvironmentState::running)};
    environments.environment.health =
        with_health(state, state == "failing" ? 3 : 0, state == "passing" ? "" : "no answer")
            .health;
  }
};

}  // namespace

TEST_CASE("waiting for a health check ends with its verdict, or with its time") {
  CHECK(verdict({.id = "fuse-web", .state = EnvironmentState::running}, seconds(119)).empty());
  CHECK(verdict({.id = "fuse-web", .state = EnvironmentState::running}, minutes(2)) ==
        "fuse-web was not healthy within 2m0s");
  CHECK(verdict(with_health("starting", 1, "refused"), seconds(1)).empty());
  CHECK(verdict(with_health("starting", 1, "refused"), minutes(3)) ==
        "fuse-web was not healthy within 2m0s: refused");
  CHECK(verdict(with_health("passing")) == "done");
  CHECK(verdict(with_health("passing"), minutes(3)) == "done");
  CHECK(verdict(with_health("failing", 3, "it\nbroke")) ==
        "fuse-web is not healthy, 3 failures in a row: it broke");
}

TEST_CASE("an environment or a job that failed ends the waiting, and others tell of it") {
  Environment gone = with_health("starting");
  gone.state = EnvironmentState::failed;
  CHECK(verdict(gone) == "done");
  Environment crashed = with_health("starting");
  crashed.job = ended_job(3);
  CHECK(verdict(crashed) == "done");
  // One that ended well may have started what is probed.
  crashed.job = ended_job(0);
  CHECK(verdict(crashed).empty());
}

TEST_CASE("a verdict in words") {
  const WallTime now = parse_rfc3339("2026-11-30T10:04:00Z").value();
  CHECK(health_text(*with_health("passing").health, now) == "passing for 4 m 0 s");
  CHECK(health_text(*with_health("starting", 1, "refused").health, now) ==
        "starting for 4 m 0 s, 1 failure: refused");
}

TEST_CASE("up --wait-healthy returns when the check passes") {
  HealthWorld world("passing");
  CHECK(world.fuse({"up", "--wait-healthy"}) == success);
  CHECK(world.out.str().find("fuse-web: running on local\n") == 0);
  CHECK(world.err.str().find("  health         wait for its health check") != std::string::npos);
}

TEST_CASE("up --wait-healthy fails with the last message") {
  HealthWorld failing("failing");
  CHECK(failing.fuse({"up", "--wait-healthy"}) == failed);
  CHECK(failing.err.str().find("error: fuse-web is not healthy, 3 failures in a row: no answer\n"
                               "  it goes on; look into it: fuse shell fuse-web") !=
        std::string::npos);
  HealthWorld slow("starting");
  CHECK(slow.fuse({"up", "--wait-healthy", "--health-timeout", "10ms"}) == failed);
  CHECK(slow.err.str().find("error: fuse-web was not healthy within 10ms: no answer\n") !=
        std::string::npos);
}

TEST_CASE("up --wait-healthy wants a healthcheck, and a time that is one") {
  World world;
  world.folder.write("Fusefile", "version: 1\nname: web\nrun: ./serve\n");
  CHECK(world.fuse({"up", "--wait-healthy"}) == wrong_usage);
  CHECK(world.err.str() ==
        "error: --wait-healthy has nothing to wait for: the Fusefile has no healthcheck\n");
  HealthWorld other("passing");
  CHECK(other.fuse({"up", "--wait-healthy", "--health-timeout", "soon"}) == wrong_usage);
  CHECK(other.fuse({"up", "--wait-healthy", "--health-timeout", "0"}) == wrong_usage);
  CHECK(other.fuse({"up", "--health-timeout", "1m"}) == wrong_usage);
  CHECK(other.fuse({"up", "--wait-healthy", "--no-wait"}) == wrong_usage);
  CHECK(other.environments.created.empty());
}

TEST_CASE("health is in lists and details when there is any") {
  World world;
  world.environments.environment.state = EnvironmentState::running;
  world.environments.environment.health = with_health("failing", 3, "refused").health;
  world.environments.environment.created_at = "not a time";
  CHECK(world.fuse({"ps"}) == success);
  CHECK(world.out.str() ==
        "ID           STATE     JOB   HEALTH    HOST    SIZE    AGE\n"
        "fuse-train   running   -     failing   local   0 CPU   -\n");
  world.out.str("");
  CHECK(world.fuse({"environment", "get", "fuse-train"}) == success);
  CHECK(world.out.str().find("\nhealth      failing for ") != std::string::npos);
  CHECK(world.out.str().find(", 3 failures in a row: refused\n") != std::string::npos);
}

}  // namespace fuse::cmd
