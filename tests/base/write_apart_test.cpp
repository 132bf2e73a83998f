#include "base/write_apart.h"

#include <sys/stat.h>

#include "base/posix_host.h"
#include "tests/base/folder.h"
#include "tests/catch.h"

namespace fuse {
namespace {

TEST_CASE("a write that never comes back is given up, and others say how they went") {
  const Folder folder;
  PosixHost host;
  const fs::path file = folder.path() / "f";
  REQUIRE(host.replace_file(file, "", 0600));
  REQUIRE(write_apart(file, "text", std::chrono::minutes(1)));
  CHECK(*host.read_file(file) == "text");
  const auto none = write_apart("/none", "text", std::chrono::minutes(1));
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::not_found);
  CHECK(none.error().message == "write to /none: No such file or directory");

  // Nobody opens the other end of the pipe until the write was given up.
  const fs::path pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  const auto hung = write_apart(pipe, "text", std::chrono::milliseconds(50));
  REQUIRE_FALSE(hung);
  CHECK(hung.error().code == ErrorCode::unavailable);
  CHECK(hung.error().message ==
        "write to " + pipe.native() + ": the kernel did not come back within 50 ms");
  // Lets the process that was left behind go.
  CHECK(*host.read_file(pipe) == "text");
}

}  // namespace
}  // namespace fuse
