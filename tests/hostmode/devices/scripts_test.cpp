#include "base/command.h"
#include "base/posix_host.h"
#include "base/text.h"
#include "tests/catch.h"
#include "tests/hostmode/test_dir.h"

namespace fuse {
namespace {

// What the script runs fuse with.
std::string runs(const std::string& script, std::vector<std::string> arguments) {
  const TestDir dir;
  const fs::path stand_in = dir.path() / "fuse";
  write_text(stand_in, "#!/bin/sh\nprintf '<%s>' \"$@\"\n");
  fs::permissions(stand_in, fs::perms::owner_all);
  std::vector<std::string> argv = {(fs::path(FUSE_SOURCE_DIR) / "scripts" / script).native()};
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  PosixHost host;
  return require_command(
             host, {.argv = argv,
                    .environment = std::vector<std::string>{cat("FUSE_BIN=", stand_in.native()),
                                                            "PATH=/usr/bin:/bin"}})
      .value();
}

TEST_CASE("the scripts that host set-ups know run fuse") {
  CHECK(runs("qemu-vfio-bind.sh", {}) == "<agent><bind>");
  CHECK(runs("qemu-vfio-bind.sh", {"--list"}) == "<agent><bind><--list>");
  CHECK(runs("qemu-vfio-bind.sh", {"--unbind", "0000:41:00.0"}) ==
        "<agent><bind><--unbind><0000:41:00.0>");
  CHECK(runs("qemu-mig-setup.sh", {}) == "<agent><mig><apply>");
  CHECK(runs("qemu-mig-setup.sh", {"--profile", "1g.10gb=7"}) ==
        "<agent><mig><apply><--profile><1g.10gb=7>");
  CHECK(runs("qemu-mig-setup.sh", {"--list"}) == "<agent><mig><list>");
  CHECK(runs("qemu-mig-setup.sh", {"--unbind", "u"}) == "<agent><mig><destroy><u>");
}

}  // namespace
}  // namespace fuse
