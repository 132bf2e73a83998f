#include "hostmode/device_release.h"

#include "base/text.h"
#include "hostmode/devices/pci_device.h"
#include "tests/catch.h"
#include "tests/hostmode/devices/boxes.h"

namespace fuse {
namespace {

const DevicePaths paths{.dir = "/var/lib/fuse"};
const std::string card = "0000:09:00.0";
const std::string sound = "0000:09:00.1";
const std::string mdev = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001";

const std::vector<VmDevice> whole = {
    {.kind = "pci", .address = card, .uuid = "GPU-a", .group = "17"},
    {.kind = "pci", .address = sound, .group = "17"}};
const std::vector<VmDevice> slice = {{.kind = "mdev", .address = mdev, .uuid = mdev}};

DeviceRelease release(SimBox& box, const std::vector<VmDevice>& devices) {
  const auto done = release_devices(box, paths, devices, {.writes = {.write = box.write_within()}});
  REQUIRE(done);
  return *done;
}

std::map<std::string, std::string> set_aside(SimBox& box) {
  return read_device_files(box, paths).value().quarantined;
}

TEST_CASE("a VM's card comes back reset") {
  SimBox box;
  make_consumer_box(box);
  const auto done = release(box, whole);
  CHECK(done.grade == ReleaseGrade::reset);
  CHECK(release_words(done) == cat("reset (", card, ": flr, ", sound, ": flr)"));
  CHECK(set_aside(box).empty());
}

TEST_CASE("what cannot be reset is handed out again, and said not to have been") {
  SimBox box;
  make_consumer_box(box);
  REQUIRE(box.remove_all(cat("/sys/bus/pci/devices/", sound, "/reset_method")));
  const auto done = release(box, whole);
  CHECK(done.grade == ReleaseGrade::not_reset);
  CHECK(release_words(done) ==
        cat("not-reset (", card, ": flr, ", sound, ": as its driver left it)"));
  CHECK(set_aside(box).empty());
}

TEST_CASE("a companion that fails sets its card aside") {
  SimBox box;
  make_consumer_box(box);
  box.add_file(cat("/sys/bus/pci/devices/", sound, "/config"), std::string(64, '\xff'));
  CHECK(release(box, whole).grade == ReleaseGrade::quarantined);
  const auto aside = set_aside(box);
  REQUIRE(aside.size() == 1);
  CHECK(aside.at(card) == cat(sound,
                              " after a vm: its configuration space reads ffff where its "
                              "vendor 10de should be"));
}

TEST_CASE("a card that a process still has open is neither reset nor handed out") {
  SimBox box;
  make_consumer_box(box);
  const std::string group = read_pci_device(box, card).value().group;
  box.add_process(5, "qemu", "old.service", {cat("/dev/vfio/", group)});
  const auto done = release(box, whole);
  CHECK(done.grade == ReleaseGrade::quarantined);
  CHECK(done.devices[0].problem == cat("pid 5 (qemu, old.service) has /dev/vfio/", group, " open"));
  CHECK(box.writes == std::vector<std::string>{"replace /var/lib/fuse/device-quarantine.txt"});
  CHECK(set_aside(box).contains(card));
}

TEST_CASE("a mediated device is left to its driver, and must still be there") {
  SimBox box;
  CHECK(release(box, slice).grade == ReleaseGrade::quarantined);
  CHECK(set_aside(box).empty());
  box.add_file(cat("/sys/bus/mdev/devices/", mdev, "/remove"), "");
  const auto done = release(box, slice);
  CHECK(done.grade == ReleaseGrade::not_reset);
  CHECK(done.devices[0].problem.empty());
}

TEST_CASE("what cannot be set aside is not released") {
  SimBox box;
  make_consumer_box(box);
  box.add_file(cat("/sys/bus/pci/devices/", card, "/config"), std::string(64, '\xff'));
  box.refused.emplace("device-quarantine.txt", Error{ErrorCode::internal, "the disk is full"});
  const auto done = release_devices(box, paths, whole, {.writes = {.write = box.write_within()}});
  REQUIRE_FALSE(done);
  CHECK(done.error().message == "the disk is full");
}

}  // namespace
}  // namespace fuse
