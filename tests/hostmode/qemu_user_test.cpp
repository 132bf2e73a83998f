#include "hostmode/qemu_user.h"

#include "base/posix_host.h"
#include "tests/catch.h"
#include "tests/hostmode/test_dir.h"

namespace fuse {
namespace {

constexpr uid_t root = 0;
constexpr uid_t somebody = 1000;

// A machine whose /etc/passwd is this.
struct Machine {
  explicit Machine(const std::string& passwd) : host(dir.path()) {
    REQUIRE(host.make_dirs("/etc", 0755));
    REQUIRE(host.write_file("/etc/passwd", passwd));
  }
  TestDir dir{};
  PosixHost host;

  std::string name_of(const std::string& wanted, uid_t ours) {
    const auto user = find_qemu_user(host, wanted, ours);
    if (!user) return user.error().message;
    return *user ? (*user)->name : "nobody at all";
  }
};

const std::string plain =
    "root:x:0:0:root:/root:/bin/bash\nnobody:x:65534:65533:nobody:/:/usr/sbin/nologin\n";

TEST_CASE("QEMU becomes a user of its own, or nobody") {
  Machine machine(plain);
  const auto user = find_qemu_user(machine.host, "", root);
  REQUIRE(user);
  REQUIRE(*user);
  CHECK((*user)->uid == 65534);
  CHECK((*user)->gid == 65533);
  Machine prepared(plain + "fuse-qemu:x:990:991::/:/usr/sbin/nologin\n");
  CHECK(prepared.name_of("", root) == "fuse-qemu");
  CHECK(prepared.name_of("nobody", root) == "nobody");
}

TEST_CASE("QEMU stays who starts it where that is not root, or is wanted") {
  Machine machine(plain);
  CHECK(machine.name_of("", somebody) == "nobody at all");
  CHECK(machine.name_of("nobody", somebody) == "nobody at all");
  CHECK(machine.name_of("root", root) == "nobody at all");
  CHECK(Machine("root:x:0:0::/:/bin/sh\n").name_of("", root) == "nobody at all");
}

TEST_CASE("a user that QEMU cannot become is named") {
  Machine machine(plain + "broken:x:minus:1::/:\nshort:x\n");
  for (const std::string name : {"who", "broken", "short"}) {
    CHECK(machine.name_of(name, root) ==
          "QEMU cannot run as \"" + name + "\": /etc/passwd has no such user");
  }
}

}  // namespace
}  // namespace fuse
