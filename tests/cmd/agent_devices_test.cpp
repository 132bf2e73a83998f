#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tests/cmd/world.h"
#include "tests/hostmode/devices/boxes.h"
#include "tests/hostmode/devices/vgpu_sim.h"

namespace fuse::cmd {

namespace {

using nlohmann::json;

struct Answer {
  int code = 0;
  std::string out{};
  std::string err{};
  [[nodiscard]] json parsed() const { return json::parse(out); }
};

Answer fuse_on(SimBox& box, const std::vector<std::string>& arguments) {
  World world;
  world.machine = &box;
  world.write_within = box.write_within();
  const int code = world.fuse(arguments);
  return {code, world.out.str(), world.err.str()};
}

}  // namespace

TEST_CASE("probe shows each card, what is with it and what to do") {
  SimBox box;
  make_consumer_box(box);
  make_amd_box(box);
  const Answer table = fuse_on(box, {"agent", "probe"});
  CHECK(table.code == success);
  CHECK(table.out ==
        "SLOT           MODEL       MEMORY   GROUP   NODE   DRIVER   ROLE    STATE     WHY\n"
        "0000:09:00.0   10de-1e84   -        21      -      nvidia   whole   unbound   "
        "0000:09:00.0 is on nvidia\n"
        "group 21 also: 0000:09:00.1 (audio, 10de:10f8, driver snd_hda_intel) companion, "
        "0000:09:00.2 (USB, 10de:1ad8, driver xhci_hcd) companion, 0000:09:00.3 (USB-C, 10de:1ad9, "
        "no driver) companion\n");
  CHECK(table.err == "0000:09:00.0: bind it: fuse agent bind\n");

  const json both =
      fuse_on(box, {"agent", "probe", "-o", "json", "--vendor", "10DE,1002"}).parsed();
  REQUIRE(both["devices"].size() == 2);
  const json& card = both["devices"][0];
  CHECK(card["address"] == "0000:09:00.0");
  CHECK(card["state"] == "unbound");
  CHECK(card["iommu_group"] == "21");
  CHECK(card["group"].size() == 4);
  CHECK(card["group"][1]["kind"] == "companion");
  CHECK(card["bars"][1]["size"] == 268435456);
  CHECK(card["reset_methods"] == json({"flr", "bus"}));
  CHECK(card["boot_vga"] == false);
  CHECK(both["devices"][1]["vendor"] == "1002");
}

TEST_CASE("probe says what it looked at where there is nothing, and what file is wrong") {
  SimBox box;
  const Answer none = fuse_on(box, {"agent", "probe"});
  CHECK(none.code == success);
  CHECK(none.out.empty());
  CHECK(none.err.starts_with("could not look at /sys/bus/pci/devices"));
  box.add_file("/srv/vms/vfio-inventory.txt", "1 a100\n");
  const Answer wrong = fuse_on(box, {"agent", "probe", "--dir", "/srv/vms"});
  CHECK(wrong.code == failed);
  CHECK(wrong.err.find("/srv/vms/vfio-inventory.txt:1: a group is") != std::string::npos);
  CHECK(fuse_on(box, {"agent", "probe", "--dir", "vms"}).code == wrong_usage);
}

TEST_CASE("bind moves what it may, lists it and gives it back") {
  SimBox box;
  make_consumer_box(box);
  const Answer bound = fuse_on(box, {"agent", "bind"});
  CHECK(bound.code == success);
  CHECK(bound.out == "0000:09:00.0: bound\n");
  CHECK(fuse_on(box, {"agent", "bind"}).out == "0000:09:00.0: already bound\n");
  const Answer list = fuse_on(box, {"agent", "bind", "--list"});
  CHECK(list.out.find("1       10de-1e84   0000:09:00.0 0000:09:00.1 0000:09:00.2 0000:09:00.3") !=
        std::string::npos);
  CHECK(fuse_on(box, {"agent", "bind", "--list", "-o", "json"}).parsed()["groups"][0]["count"] ==
        1);
  CHECK(fuse_on(box, {"agent", "bind", "--list", "--unbind", "0000:09:00.0"}).code == wrong_usage);
  box.add_process(7, "qemu", "x.service", {"/dev/vfio/21"});
  CHECK(fuse_on(box, {"agent", "bind", "--unbind", "0000:09:00.0"}).code == in_conflict);
  box.remove_process(7);
  const Answer back = fuse_on(box, {"agent", "bind", "--unbind", "0000:09:00.0"});
  CHECK(back.code == success);
  CHECK(back.out == "0000:09:00.0: given back\n");
  CHECK(fuse_on(box, {"agent", "bind", "--list"}).err.starts_with("nothing is bound"));
}

TEST_CASE("bind fails where a group is unsafe, or nothing may be bound") {
  SimBox nvme;
  make_nvme_box(nvme);
  const Answer unsafe = fuse_on(nvme, {"agent", "bind"});
  CHECK(unsafe.code == failed);
  CHECK(unsafe.err.starts_with("0000:05:00.0: failed: 0000:05:00.0: IOMMU group 12 also holds"));
  SimBox display;
  make_display_box(display);
  CHECK(fuse_on(display, {"agent", "bind", "0000:c1:00.0"}).code == failed);
  CHECK(fuse_on(display, {"agent", "bind"}).code == success);
  SimBox none;
  none.add({.address = "0000:00:00.0", .vendor = "8086", .code = "060000"});
  CHECK(fuse_on(none, {"agent", "bind"}).code == failed);
}

TEST_CASE("mig apply, list and destroy go all the way") {
  SimBox box;
  SimSmi smi(box);
  add_mig_card(box, "0000:0f:00.0", "20b0");
  smi.add("0000:0f:00.0", "20b0", "NVIDIA A100-SXM4-40GB");
  const MdevSim mdev(box, smi, "0000:0f:00.0", {"0000:0f:00.1", "0000:0f:00.2"});
  const Answer made = fuse_on(box, {"agent", "mig", "apply", "--profile", "1g.5gb=1", "--profile",
                                    "2g.10gb=1", "-o", "json"});
  REQUIRE(made.code == success);
  CHECK(made.parsed()["made"] == 2);
  CHECK(made.err.find("make 2g.10gb at 4 of 0000:0f:00.0\n") != std::string::npos);
  const std::string uuid = made.parsed()["instances"][0]["uuid"];
  CHECK(uuid.size() == 36);
  CHECK(mdev.devices().size() == 2);
  CHECK(fuse_on(box, {"agent", "mig", "apply"}).code == success);
  const json list = fuse_on(box, {"agent", "mig", "list", "-o", "json"}).parsed();
  CHECK(list["instances"].size() == 2);
  CHECK(fuse_on(box, {"agent", "mig", "list"}).out.find("free") != std::string::npos);
  CHECK(fuse_on(box, {"agent", "mig", "apply", "--profile", "7g.40gb=1"}).code == no_placement);
  CHECK(fuse_on(box, {"agent", "mig", "apply", "--profile", "1g=1"}).code == failed);
  CHECK(fuse_on(box, {"agent", "mig", "apply", "--profile", "1g.5gb"}).code == wrong_usage);
  CHECK(fuse_on(box, {"agent", "mig", "destroy", uuid}).code == success);
  CHECK(mdev.devices().size() == 1);
  CHECK(fuse_on(box, {"agent", "mig", "destroy", uuid}).code == failed);
}

TEST_CASE("what a device of this machine refuses is a failure, not a host out of reach") {
  SimBox box;
  SimSmi smi(box);
  make_consumer_box(box);
  const Answer nothing_to_cut = fuse_on(box, {"agent", "mig", "apply", "--profile", "1g.5gb=1"});
  CHECK(nothing_to_cut.code == failed);
  CHECK(nothing_to_cut.err.starts_with("error: no card here can be cut"));
  SimBox bare;
  make_consumer_box(bare);
  fs::remove_all(bare.root() / "sys/bus/pci/drivers/vfio-pci");
  const Answer no_driver = fuse_on(bare, {"agent", "bind"});
  CHECK(no_driver.code == failed);
  CHECK(no_driver.err.find("modprobe vfio-pci") != std::string::npos);
}

TEST_CASE("doctor says what is wrong and what to do, and fails while there are problems") {
  SimBox box;
  const Answer sick = fuse_on(box, {"agent", "doctor"});
  CHECK(sick.code == failed);
  CHECK(sick.out.starts_with("problem  iommu: the kernel has no IOMMU groups\n         switch on"));
  const json findings = fuse_on(box, {"agent", "doctor", "-o", "json"}).parsed()["findings"];
  CHECK(findings[0]["name"] == "iommu");
  CHECK(findings[0]["result"] == "problem");
  CHECK(findings[0]["fix"].is_string());
}

}  // namespace fuse::cmd
