#include "base/command.h"

#include <string>

#include "base/posix_host.h"
#include "tests/base/folder.h"
#include "tests/catch.h"

namespace fuse {
namespace {

using namespace std::chrono_literals;

SpawnSpec shell(std::string script) {
  return {.argv = {"sh", "-c", std::move(script)}};
}

TEST_CASE("a command's output and exit come back") {
  PosixHost host;
  const auto output = run_command(host, shell("echo out; echo err >&2; exit 3"));
  REQUIRE(output);
  CHECK(output->out == "out\n");
  CHECK(output->err == "err\n");
  CHECK(output->status.code == 3);
}

TEST_CASE("a command's input is fed while its output is read") {
  PosixHost host;
  std::string input;
  for (int i = 0; i < 200000; ++i) input += "0123456789";
  const auto output = run_command(host, {.argv = {"cat"}}, input);
  REQUIRE(output);
  CHECK((output->out == input));
}

TEST_CASE("a command that does not read its input is no problem") {
  PosixHost host;
  const auto output = run_command(host, shell("exit 0"), std::string(5U << 20U, 'x'));
  REQUIRE(output);
  CHECK(output->status.success());
}

TEST_CASE("a command without input reads an end at once") {
  PosixHost host;
  CHECK(run_command(host, {.argv = {"cat"}})->out.empty());
}

TEST_CASE("a command that takes too long is killed") {
  PosixHost host;
  const Folder folder;
  const std::string pid_file = (folder.path() / "pid").native();
  const auto output = run_command(host, shell("echo $$ > '" + pid_file + "'; exec sleep 1000"), {},
                                  {.timeout = 300ms});
  REQUIRE_FALSE(output);
  CHECK(output.error().code == ErrorCode::unavailable);
  CHECK(output.error().message == "sh: did not end within 300 ms");
  const auto pid = host.read_file(pid_file);
  if (pid && !pid->empty()) CHECK_FALSE(fs::exists("/proc/" + pid->substr(0, pid->size() - 1)));
}

TEST_CASE("a command that closes its output and goes on is killed as well") {
  PosixHost host;
  const auto output =
      run_command(host, shell("exec >&- 2>&-; exec sleep 1000"), {}, {.timeout = 300ms});
  REQUIRE_FALSE(output);
  CHECK(output.error().message == "sh: did not end within 300 ms");
}

TEST_CASE("a command that prints too much is an error") {
  PosixHost host;
  const auto output = run_command(host, {.argv = {"yes"}}, {}, {.most_output = 100000});
  REQUIRE_FALSE(output);
  CHECK(output.error().message == "yes: it printed more than 100000 bytes");
}

TEST_CASE("a required command's failure quotes what it said") {
  PosixHost host;
  CHECK(*require_command(host, shell("echo fine")) == "fine\n");
  CHECK(require_command(host, shell("echo 'no disk' >&2; exit 4")).error().message ==
        "sh exited with 4: no disk");
  CHECK(require_command(host, shell("exit 4")).error().message == "sh exited with 4");
  CHECK(require_command(host, shell("kill -9 $$")).error().message == "sh was killed by signal 9");
  CHECK(require_command(host, {.argv = {"fuse-no-such-program"}}).error().code ==
        ErrorCode::not_found);
}

}  // namespace
}  // namespace fuse
