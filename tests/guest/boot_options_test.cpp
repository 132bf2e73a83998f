#include "guest/boot_options.h"

#include "tests/catch.h"

namespace fuse {
namespace {

TEST_CASE("a kernel command line says what a guest is to be") {
  const auto options = parse_boot_options(
      "console=ttyS0 quiet fuse.host=fuse-a fuse.net=192.0.2.7/24,192.0.2.1,192.0.2.53 "
      "fuse.root=/dev/vda fuse.init=/sbin/init other\n");
  REQUIRE(options);
  CHECK(options->hostname == "fuse-a");
  CHECK(options->root == "/dev/vda");
  CHECK(options->init == "/sbin/init");
  CHECK(options->network ==
        NetworkOptions{
            .address = "192.0.2.7", .prefix = 24, .gateway = "192.0.2.1", .dns = "192.0.2.53"});
}

TEST_CASE("a command line without words of ours asks for nothing") {
  const auto options = parse_boot_options("root=/dev/sda fusex.net=1 panic=-1");
  REQUIRE(options);
  CHECK(options->hostname.empty());
  CHECK(options->root.empty());
  CHECK(options->init.empty());
  CHECK_FALSE(options->network);
}

TEST_CASE("a guest's network is QEMU's own, none, or given in part") {
  CHECK(parse_boot_options("fuse.net=user")->network ==
        NetworkOptions{
            .address = "10.0.2.15", .prefix = 24, .gateway = "10.0.2.2", .dns = "10.0.2.3"});
  CHECK_FALSE(parse_boot_options("fuse.net=none")->network);
  CHECK(parse_boot_options("fuse.net=10.0.0.1/8")->network ==
        NetworkOptions{.address = "10.0.0.1", .prefix = 8});
}

TEST_CASE("a network that cannot be is an error") {
  for (const char* value : {"10.0.0.1", "10.0.0.1/33", "10.0.0.1/0", "10.0.0/8", "x/8,1.1.1.1",
                            "10.0.0.1/8,gate", "10.0.0.1/8,10.0.0.2,1.1.1.1,2.2.2.2"}) {
    CAPTURE(value);
    CHECK(parse_boot_options(std::string("fuse.net=") + value).error().code ==
          ErrorCode::invalid_argument);
  }
}

}  // namespace
}  // namespace fuse
