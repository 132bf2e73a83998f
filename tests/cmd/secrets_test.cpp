// Every way of giving a secret, and that no value comes out again.
#include "base/text.h"
#include "tests/cmd/world.h"

namespace fuse::cmd {

namespace {

constexpr const char* needs_three =
    "version: 1\nname: train\nimage: micro\nenv: { ONE: { secret: ONE } }\n"
    "secrets: [TWO, THREE]\nrun: echo hi\n";
constexpr const char* value = "hunter2-is-a-long-secret";

// A folder where the value is to be had in every way.
void prepare(World& world) {
  world.folder.write("Fusefile", needs_three);
  world.folder.write("value", cat(value, "\n"));
  world.folder.write("secrets", cat("# mine\nTWO=", value, "\n"));
  world.variables["ONE"] = value;
}

void check_silent(const World& world) {
  CHECK(world.out.str().find("hunter2") == std::string::npos);
  CHECK(world.err.str().find("hunter2") == std::string::npos);
}

}  // namespace

TEST_CASE("secrets reach the request by environment, value, file and stdin") {
  World world;
  prepare(world);
  world.in.str(cat(value, "\r\n"));
  CHECK(world.fuse({"up", "--no-wait", "--secret", "ONE", "--secrets-file", "secrets", "--secret",
                    "THREE=@value", "--secret", "EXTRA=-"}) == success);
  REQUIRE(world.environments.created.size() == 1);
  CHECK(world.environments.created[0].secrets ==
        std::map<std::string, std::string>{
            {"ONE", value}, {"TWO", value}, {"THREE", value}, {"EXTRA", value}});
  check_silent(world);
}

TEST_CASE("all that is missing is named in one go, and what went wrong beside it") {
  World world;
  prepare(world);
  world.folder.write("bad", cat("ONE=1\n", value, "\n"));
  CHECK(world.fuse({"up", "--secret", "TWO", "--secrets-file", "bad", "--secret", "X=@hunter2"}) ==
        wrong_usage);
  CHECK(world.err.str().starts_with(
      "error: missing required secrets: THREE, TWO; "
      "bad: line 2: invalid key=value \"[REDACTED]\"; "
      "secret \"TWO\": the environment has no variable of this name; "
      "secret \"X\": the file that is named after @ cannot be read: No such file or directory\n"));
  CHECK(world.environments.created.empty());
  check_silent(world);
}

TEST_CASE("a secret that is not given is a failure, one that cannot be read is wrong usage") {
  World world;
  prepare(world);
  CHECK(world.fuse({"up", "--secret", "ONE"}) == failed);
  CHECK(world.fuse({"up", "--secrets-file", "none"}) == wrong_usage);
  CHECK(world.fuse({"up", "--secret", "ONE=@none"}) == wrong_usage);
  CHECK(world.fuse({"up", "--secret", "NOT_THERE"}) == wrong_usage);
  CHECK(world.fuse({"validate", "--check-secrets", "--secrets-file", "none"}) == wrong_usage);
  CHECK(world.fuse({"run", "--secret", "ONE"}) == fuse_failed);
  CHECK(world.fuse({"run", "--secrets-file", "none"}) == fuse_failed);
  CHECK(world.environments.created.empty());
}

TEST_CASE("an empty secret is missing unless it is allowed") {
  World world;
  world.folder.write("Fusefile", "version: 1\nsecrets: [A]\nrun: ls\n");
  CHECK(world.fuse({"up", "--no-wait", "--secret", "A="}) == failed);
  CHECK(world.err.str().find("missing required secrets: A") != std::string::npos);
  CHECK(world.fuse({"up", "--no-wait", "--secret", "A=", "--allow-empty-secrets"}) == success);
}

TEST_CASE("no command that only looks shows a value") {
  for (const std::vector<std::string>& command :
       std::vector<std::vector<std::string>>{{"validate", "--check-secrets"},
                                             {"validate", "--check-secrets", "-o", "json"},
                                             {"up", "--dry-run"},
                                             {"up", "--dry-run", "-o", "json"},
                                             {"up", "--no-wait", "--verbose"}}) {
    World world;
    prepare(world);
    auto arguments = command;
    for (const char* name : {"ONE", "TWO", "THREE"}) {
      arguments.insert(arguments.end(), {"--secret", cat(name, "=", value)});
    }
    CHECK(world.fuse(arguments) == success);
    check_silent(world);
  }
}

TEST_CASE("a secret without an end is refused") {
  World world;
  prepare(world);
  CHECK(world.fuse({"up", "--secret", "ONE=@/dev/zero"}) == wrong_usage);
  CHECK(world.err.str().find("secret \"ONE\": the file that is named after @ cannot be read: more "
                             "than 1048576 bytes") != std::string::npos);
}

}  // namespace fuse::cmd
