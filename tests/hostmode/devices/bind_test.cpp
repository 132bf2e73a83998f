#include "hostmode/devices/bind.h"

#include <algorithm>

#include "base/text.h"
#include "tests/catch.h"
#include "tests/hostmode/devices/boxes.h"

namespace fuse {
namespace {

using Texts = std::vector<std::string>;
using Kind = GroupOutcome::Kind;
const DevicePaths paths{.dir = "/var/lib/fuse"};

Result<std::vector<GroupOutcome>> try_bind(SimBox& box, BindOptions options) {
  options.writes.write = box.write_within();
  return bind_devices(box, paths, options);
}

std::vector<GroupOutcome> bind(SimBox& box, const BindOptions& options = {}) {
  auto outcomes = try_bind(box, options);
  REQUIRE(outcomes);
  return *outcomes;
}

Result<GroupOutcome> unbind(SimBox& box, const std::string& slot) {
  return unbind_device(box, paths, slot, {.writes = {.write = box.write_within()}});
}

Texts drivers(const SimBox& box, const std::string& slot, int functions) {
  Texts out;
  for (int i = 0; i < functions; ++i) out.push_back(box.driver_of(cat(slot, '.', i)));
  return out;
}

std::string inventory(const SimBox& box) {
  const std::string text = box.text("/var/lib/fuse/vfio-inventory.txt");
  return text.substr(text.find('\n') + 1);
}

// nvidia-smi as it is while the card is on its driver, and once it is not.
void answer_for(SimBox& box, const std::string& address, const std::string& row) {
  box.on_run = [&box, address, row](const Texts& argv) -> std::optional<SimBox::Answer> {
    if (argv.front() == "dmesg") return SimBox::Answer{};
    if (argv.front() != "nvidia-smi") return std::nullopt;
    if (box.driver_of(address) != "nvidia") return SimBox::Answer{"No devices were found\n", "", 6};
    return SimBox::Answer{smi_csv_of({row})};
  };
}

const Texts all_vfio = {"vfio-pci", "vfio-pci", "vfio-pci", "vfio-pci"};
const Texts as_before = {"nvidia", "snd_hda_intel", "xhci_hcd", ""};

TEST_CASE("a card goes to vfio-pci with its companions and back to each one's driver") {
  SimBox box;
  make_consumer_box(box);
  answer_for(box, "0000:09:00.0",
             "0, GPU-a, NVIDIA GeForce RTX 2070 SUPER, 00000000:09:00.0, 8192 MiB, 550.54.15, "
             "7.5, [N/A], [N/A]");
  const auto outcomes = bind(box);
  REQUIRE(outcomes.size() == 1);
  CHECK(outcomes[0].kind == Kind::bound);
  CHECK(drivers(box, "0000:09:00", 4) == all_vfio);
  const std::string line =
      "1 geforce-rtx-2070-super 0000:09:00.0 0000:09:00.1 0000:09:00.2 0000:09:00.3 | "
      "bus_id=0000:09:00.0;uuid=GPU-a;model=NVIDIA GeForce RTX 2070 "
      "SUPER;memory_mb=8192;driver_version=550.54.15;compute_cap=7.5\n";
  CHECK(inventory(box) == line);
  // The card itself first.
  const auto first = std::ranges::find_if(
      box.writes, [](const std::string& write) { return write.ends_with("unbind 0000:09:00.0"); });
  const auto sound = std::ranges::find_if(
      box.writes, [](const std::string& write) { return write.ends_with("unbind 0000:09:00.1"); });
  CHECK(first < sound);

  SECTION("a second time changes nothing, and nothing is forgotten") {
    box.writes.clear();
    CHECK(bind(box)[0].kind == Kind::already);
    CHECK(inventory(box) == line);
    CHECK(std::ranges::none_of(
        box.writes, [](const std::string& write) { return write.starts_with("/sys/"); }));
    // Not even when the inventory was lost.
    REQUIRE(box.remove_all("/var/lib/fuse/vfio-inventory.txt"));
    bind(box);
    CHECK(inventory(box) == line);
  }
  SECTION("and is given back, sound chip first") {
    box.writes.clear();
    const auto back = unbind(box, "09:00.2");
    REQUIRE(back);
    CHECK(drivers(box, "0000:09:00", 4) == as_before);
    CHECK(inventory(box).empty());
    CHECK(box.text("/sys/bus/pci/devices/0000:09:00.0/driver_override") == "(null)\n");
    CHECK(std::ranges::find(box.writes, "/sys/bus/pci/drivers_probe 0000:09:00.1") <
          std::ranges::find(box.writes, "/sys/bus/pci/drivers_probe 0000:09:00.0"));
    CHECK(unbind(box, "0000:09:00.0")->kind == Kind::already);
    CHECK(bind(box)[0].kind == Kind::bound);
    CHECK(inventory(box) == line);
  }
  SECTION("but not while a VM has it") {
    box.add_process(91, "qemu-system-x86", "fuse-agent.service", {"/dev/vfio/21"});
    const auto refused = unbind(box, "0000:09:00.0");
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::conflict);
    CHECK(refused.error().message ==
          "IOMMU group 21 is in use: pid 91 (qemu-system-x86, fuse-agent.service) has "
          "/dev/vfio/21 open");
    CHECK(drivers(box, "0000:09:00", 4) == all_vfio);
    CHECK(bind(box)[0].kind == Kind::already);
    CHECK(inventory(box) == line);
  }
}

TEST_CASE("a failure half way puts the group back") {
  SimBox box;
  make_consumer_box(box);
  const auto reason = [&] {
    const auto outcomes = bind(box);
    CHECK(outcomes.at(0).kind == Kind::failed);
    CHECK(drivers(box, "0000:09:00", 4) == as_before);
    CHECK(inventory(box).empty());
    for (int i = 0; i < 4; ++i) {
      CHECK(box.text(cat("/sys/bus/pci/devices/0000:09:00.", i, "/driver_override")) == "(null)\n");
    }
    return outcomes.at(0).reason;
  };
  SECTION("a driver refuses to let go") {
    box.refused.emplace("xhci_hcd/unbind", errno_error("write to unbind", EBUSY));
    CHECK(reason() ==
          "0000:09:00.2: write to unbind: Device or resource busy; the others of the group were "
          "put back");
  }
  SECTION("an override cannot be set") {
    box.refused.emplace("0000:09:00.1/driver_override vfio-pci",
                        errno_error("write to driver_override", EPERM));
    CHECK(reason() ==
          "0000:09:00.1: write to driver_override: Operation not permitted; the others of the "
          "group were put back");
  }
  SECTION("the kernel takes the probe and binds nothing") {
    box.after_write = [&box](const std::string& path, const std::string& text) {
      if (path.ends_with("drivers_probe") && text == "0000:09:00.3" &&
          box.driver_of(text) == "vfio-pci") {
        box.unbind(text);
      }
    };
    CHECK(reason() ==
          "0000:09:00.3: vfio-pci did not take it (now no driver); the others of the group were "
          "put back");
  }
}

TEST_CASE("a driver that hangs does not hang fuse, and who holds it is named") {
  SimBox box;
  make_a100_box(box);
  box.refused.emplace(
      "nvidia/unbind 0000:0f:00.0",
      Error{ErrorCode::unavailable, "the kernel did not come back within 30000 ms"});
  box.after_write = [&box](const std::string& path, const std::string&) {
    // Opened it after the first look.
    if (!path.ends_with("driver_override")) return;
    box.add_file("/dev/nvidia2", "");
    box.add_process(31, "python3", "session-4.scope", {"/dev/nvidia2"});
  };
  const auto outcomes = bind(box);
  REQUIRE(outcomes.size() == 4);
  CHECK(outcomes[0].kind == Kind::failed);
  CHECK(outcomes[0].reason ==
        "0000:0f:00.0: nvidia does not let go of it: the kernel did not come back within 30000 "
        "ms; pid 31 (python3, session-4.scope) has /dev/nvidia2 open");
  CHECK(outcomes[0].hint == "end it: kill 31");
  CHECK(box.text("/var/lib/fuse/device-quarantine.txt")
            .ends_with("0000:0f:00.0 0000:0f:00.0 was being taken from its driver, which hung\n"));
  // It does not keep the others.
  CHECK(outcomes[3].kind == Kind::bound);
  CHECK(inventory(box).find("0000:0f:00.0") == std::string::npos);
}

TEST_CASE("what may not be moved is not, and said") {
  const auto only = [](void (*make)(SimBox&), const BindOptions& options) {
    SimBox box;
    make(box);
    auto outcomes = bind(box, options);
    CHECK(std::ranges::none_of(box.writes, [](const std::string& write) {
      return write.find("driver_override") != std::string::npos &&
             write.find("0000:c2") == std::string::npos;
    }));
    return outcomes.at(0);
  };
  const GroupOutcome nvme = only(make_nvme_box, {});
  CHECK(nvme.kind == Kind::failed);
  CHECK(nvme.reason.find("also holds 0000:04:00.0 (NVMe") != std::string::npos);
  const GroupOutcome display = only(make_display_box, {});
  CHECK(display.kind == Kind::left_alone);
  CHECK(display.reason == "0000:c1:00.0: this host's console is on it (driver nvidia)");
  CHECK(only(make_virtual_function_box, {}).kind == Kind::failed);
}

TEST_CASE("a bridge in the group is not touched") {
  SimBox box;
  make_bridge_box(box);
  CHECK(bind(box)[0].kind == Kind::bound);
  CHECK(box.driver_of("0000:00:01.0") == "pcieport");
  CHECK(inventory(box).find("0000:00:01.0") == std::string::npos);
}

TEST_CASE("two cards of a group are moved together, in one line") {
  SimBox box;
  make_shared_group_box(box);
  CHECK(bind(box, {.inventory = {}, .slots = {"28:00.0"}})[0].slots ==
        Texts{"0000:27:00.0", "0000:28:00.0"});
  CHECK(inventory(box) ==
        "2 tesla-v100-pcie-32gb 0000:27:00.0 0000:28:00.0 | "
        "bus_id=0000:27:00.0;model=NVIDIA Tesla V100-PCIE-32GB | "
        "bus_id=0000:28:00.0;model=NVIDIA Tesla V100-PCIE-32GB\n");
}

TEST_CASE("cards of other vendors keep their lines when the usual ones are bound") {
  SimBox box;
  make_amd_box(box);
  make_display_box(box);
  CHECK(bind(box, {.inventory = {.vendors = {"1002"}}, .slots = {}})[0].kind == Kind::bound);
  CHECK(bind(box)[1].kind == Kind::bound);
  CHECK(inventory(box) ==
        "1 a100-sxm4-80gb 0000:c2:00.0 | bus_id=0000:c2:00.0;model=NVIDIA A100-SXM4-80GB\n"
        "1 1002-73bf 0000:2d:00.0 0000:2d:00.1 | bus_id=0000:2d:00.0\n");
}

TEST_CASE("vfio-pci is loaded where it is a module, and said where there is none") {
  SimBox box;
  make_shared_group_box(box);
  fs::remove_all(box.root() / "sys/bus/pci/drivers/vfio-pci");
  const auto none = bind(box);
  CHECK(none[0].reason.starts_with("this kernel has no vfio-pci driver"));
  CHECK(none[0].hint == "load it as root: modprobe vfio-pci");
  box.on_run = [&box](const Texts& argv) -> std::optional<SimBox::Answer> {
    if (argv == Texts{"modprobe", "vfio-pci"}) {
      box.add_file("/sys/bus/pci/drivers/vfio-pci/unbind", "");
    }
    return SimBox::Answer{};
  };
  CHECK(bind(box)[0].kind == Kind::bound);
  CHECK(try_bind(box, {.inventory = {}, .slots = {"0000:99:00.0"}}).error().message ==
        "no GPU's IOMMU group has 0000:99:00.0");
  CHECK(try_bind(box, {.inventory = {}, .slots = {"gpu0"}}).error().message ==
        "\"gpu0\" is not a PCI address, as in 0000:41:00.0");
}

}  // namespace
}  // namespace fuse
