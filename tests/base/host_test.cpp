#include "base/host.h"

#include <sys/stat.h>

#include <atomic>
#include <cerrno>
#include <string>
#include <thread>

#include "base/posix_host.h"
#include "tests/base/folder.h"
#include "tests/catch.h"
#include "tests/fakes/fake_host.h"

namespace fuse {
namespace {

using Names = std::vector<std::string>;

// What every Host has to keep, on one that is empty but for "/".
void check_host(Host& host) {
  SECTION("a file holds what was written last") {
    REQUIRE(host.make_dirs("/a", 0755));
    REQUIRE(host.replace_file("/a/f", "one", 0600));
    CHECK(*host.read_file("/a/f") == "one");
    REQUIRE(host.replace_file("/a/f", std::string("\0two", 4), 0600));
    CHECK(*host.read_file("/a/f") == std::string("\0two", 4));
    REQUIRE(host.write_file("/a/f", "3"));
    CHECK(*host.read_file("/a/f") == "3");
    REQUIRE(host.write_file("/a/new", "4"));
    CHECK(*host.list_dir("/a") == Names{"f", "new"});
  }
  SECTION("what is missing is not_found and named") {
    CHECK(host.read_file("/none").error().code == ErrorCode::not_found);
    CHECK(host.read_file("/none").error().message == "open /none: No such file or directory");
    CHECK(host.read_link("/none").error().code == ErrorCode::not_found);
    CHECK(host.list_dir("/none").error().code == ErrorCode::not_found);
    CHECK(host.write_file("/none/f", "x").error().code == ErrorCode::not_found);
    CHECK(host.replace_file("/none/f", "x", 0600).error().code == ErrorCode::not_found);
  }
  SECTION("folders are made with their parents, once") {
    REQUIRE(host.make_dirs("/a/b/c", 0755));
    REQUIRE(host.make_dirs("/a/b/c", 0755));
    REQUIRE(host.make_dirs("/a/b/d", 0755));
    CHECK(*host.list_dir("/a/b") == Names{"c", "d"});
    CHECK(host.list_dir("/a/b/c")->empty());
  }
  SECTION("a folder is not made where a file is") {
    REQUIRE(host.replace_file("/f", "x", 0600));
    CHECK_FALSE(host.make_dirs("/f", 0755));
    CHECK_FALSE(host.make_dirs("/f/g", 0755));
  }
  SECTION("a folder goes with all below it, and what is not there is gone already") {
    REQUIRE(host.make_dirs("/a/b", 0755));
    REQUIRE(host.make_dirs("/ab", 0755));
    REQUIRE(host.replace_file("/a/b/f", "x", 0600));
    REQUIRE(host.remove_all("/a"));
    REQUIRE(host.remove_all("/a"));
    CHECK(*host.list_dir("/") == Names{"ab"});
  }
}

TEST_CASE("a real machine under a root is a Host") {
  const Folder folder;
  PosixHost host(folder.path());
  check_host(host);
}

TEST_CASE("a machine in memory is a Host") {
  FakeHost host;
  check_host(host);
}

TEST_CASE("links lead where they say, on the real machine and in memory") {
  const Folder folder;
  PosixHost real(folder.path());
  REQUIRE(real.make_dirs("/sys/devices/d", 0755));
  REQUIRE(real.make_dirs("/sys/bus", 0755));
  REQUIRE(real.replace_file("/sys/devices/d/vendor", "0x10de", 0644));
  fs::create_symlink("../devices/d", folder.path() / "sys/bus/link");
  FakeHost fake;
  fake.add_file("/sys/devices/d/vendor", "0x10de");
  fake.add_link("/sys/bus/link", "../devices/d");

  for (Host* host : {static_cast<Host*>(&real), static_cast<Host*>(&fake)}) {
    CHECK(*host->read_link("/sys/bus/link") == "../devices/d");
    CHECK(*host->read_file("/sys/bus/link/vendor") == "0x10de");
    CHECK(*host->list_dir("/sys/bus/link") == Names{"vendor"});
    // What a link leads to survives the link.
    REQUIRE(host->remove_all("/sys/bus/link"));
    CHECK(*host->read_file("/sys/devices/d/vendor") == "0x10de");
  }
}

TEST_CASE("replacing a link leaves what it leads to alone") {
  const Folder folder;
  PosixHost real(folder.path());
  REQUIRE(real.replace_file("/target", "old", 0644));
  fs::create_symlink("target", folder.path() / "link");
  FakeHost fake;
  fake.add_file("/target", "old");
  fake.add_link("/link", "target");
  for (Host* host : {static_cast<Host*>(&real), static_cast<Host*>(&fake)}) {
    REQUIRE(host->replace_file("/link", "new", 0644));
    CHECK(*host->read_file("/link") == "new");
    CHECK(*host->read_file("/target") == "old");
  }
}

TEST_CASE("a replaced file has its mode and leaves no temporary file") {
  const Folder folder;
  PosixHost host;
  const fs::path file = folder.path() / "f";
  REQUIRE(host.replace_file(file, "x", 0640));
  CHECK((fs::status(file).permissions() & fs::perms::all) == fs::perms(0640));
  REQUIRE(host.replace_file(file, "y", 0600));
  CHECK((fs::status(file).permissions() & fs::perms::all) == fs::perms(0600));
  CHECK(*host.list_dir(folder.path()) == Names{"f"});

  // A folder in the way: the attempt fails and cleans up behind itself.
  fs::create_directories(folder.path() / "d/below");
  CHECK_FALSE(host.replace_file(folder.path() / "d", "z", 0600));
  CHECK(*host.list_dir(folder.path()) == Names{"d", "f"});
}

TEST_CASE("a reader of a replaced file sees the old bytes or the new, never a mix") {
  const Folder folder;
  PosixHost host;
  const fs::path file = folder.path() / "f";
  const std::string a(100000, 'a');
  const std::string b(100000, 'b');
  REQUIRE(host.replace_file(file, a, 0600));
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < 50; ++i) (void)host.replace_file(file, i % 2 == 0 ? b : a, 0600);
    done = true;
  });
  bool whole = true;
  while (!done) {
    const auto text = host.read_file(file);
    whole = whole && text && (*text == a || *text == b);
  }
  writer.join();
  CHECK(whole);
}

TEST_CASE("new folders have the mode asked for") {
  const Folder folder;
  PosixHost host(folder.path());
  REQUIRE(host.make_dirs("/secret/inner", 0700));
  CHECK((fs::status(folder.path() / "secret").permissions() & fs::perms::all) == fs::perms(0700));
}

TEST_CASE("a test plays the kernel and the programs of a machine in memory") {
  FakeHost host;
  host.add_file("/sys/bus/pci/drivers/vfio-pci/bind", "");
  host.on_write = [&](const fs::path& file, std::string_view text) -> Result<void> {
    if (file.filename() != "bind") return {};
    if (text == "bad") return errno_error("write", ENODEV);
    host.add_link("/sys/devices/d/driver", "../../bus/pci/drivers/vfio-pci");
    return {};
  };
  CHECK_FALSE(host.write_file("/sys/bus/pci/drivers/vfio-pci/bind", "bad"));
  CHECK_FALSE(host.read_link("/sys/devices/d/driver"));
  REQUIRE(host.write_file("/sys/bus/pci/drivers/vfio-pci/bind", "0000:01:00.0"));
  CHECK(host.read_link("/sys/devices/d/driver")->filename() == "vfio-pci");

  host.on_spawn = [](const SpawnSpec&) {
    auto process = std::make_unique<FakeProcess>();
    process->status.code = 3;
    return Result<std::unique_ptr<Process>>(std::move(process));
  };
  const auto process = host.spawn({.argv = {"nvidia-smi", "-L"}});
  REQUIRE(process);
  CHECK((*(*process)->wait(std::chrono::milliseconds(0)))->code == 3);
  CHECK(host.spawned.at(0).argv == Names{"nvidia-smi", "-L"});
}

}  // namespace
}  // namespace fuse
