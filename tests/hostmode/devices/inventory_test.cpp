#include "hostmode/devices/inventory.h"

#include <algorithm>

#include "base/text.h"
#include "tests/catch.h"
#include "tests/hostmode/devices/boxes.h"

namespace fuse {
namespace {

const DevicePaths paths{.dir = "/var/lib/fuse"};

DeviceInventory look(SimBox& box, const InventoryOptions& options = {}) {
  auto inventory = read_inventory(box, paths, options);
  REQUIRE(inventory);
  return *inventory;
}

std::vector<std::string> states(const DeviceInventory& inventory) {
  std::vector<std::string> out;
  for (const CardGroup& group : inventory.groups) {
    for (const GpuCard& card : group.cards) {
      out.push_back(cat(card.pci.address, ' ', to_string(card.state)));
    }
  }
  return out;
}

GpuCard first_card(const DeviceInventory& inventory) {
  REQUIRE_FALSE(inventory.groups.empty());
  REQUIRE_FALSE(inventory.groups.front().cards.empty());
  return inventory.groups.front().cards.front();
}

std::vector<std::string> kinds(const GpuGroupScan& group) {
  static constexpr std::array names = {"gpu", "companion", "bridge", "foreign"};
  std::vector<std::string> out;
  for (const GroupMember& member : group.members) {
    out.push_back(cat(member.device.address, ' ', names.at(static_cast<std::size_t>(member.kind))));
  }
  return out;
}

using Texts = std::vector<std::string>;

TEST_CASE("four A100 are found with node, group and memory, and their switches apart") {
  SimBox box;
  make_a100_box(box);
  box.on_run = [](const Texts& argv) -> std::optional<SimBox::Answer> {
    if (argv.front() != "nvidia-smi") return std::nullopt;
    return SimBox::Answer{
        smi_csv_of({"0, GPU-a, NVIDIA A100-SXM4-40GB, 00000000:0F:00.0, 40960 "
                    "MiB, 550.54.15, 8.0, Disabled, Disabled"})};
  };

  const DeviceInventory inventory = look(box);

  CHECK(states(inventory) == Texts{"0000:0f:00.0 unbound", "0000:10:00.0 unbound",
                                   "0000:87:00.0 unbound", "0000:88:00.0 unbound"});
  const GpuCard card = first_card(inventory);
  CHECK(card.facts == GpuFacts{.bus_id = "0000:0f:00.0",
                               .uuid = "GPU-a",
                               .model = "NVIDIA A100-SXM4-40GB",
                               .memory_mb = 40960,
                               .driver_version = "550.54.15",
                               .compute_cap = "8.0",
                               .mig_mode = "Disabled"});
  CHECK(card.kind == "a100-sxm4-40gb");
  CHECK(card.pci.group == "20");
  CHECK(card.pci.numa == 0);
  CHECK(card.pci.reset_methods == Texts{"flr", "bus"});
  REQUIRE(card.pci.bars.size() == 2);
  CHECK(card.pci.bars[1].size == std::uint64_t{64} << 30U);
  CHECK(card.pci.bars[1].prefetchable);
  CHECK_FALSE(card.pci.bars[0].prefetchable);
  CHECK(card.reason == "0000:0f:00.0 is on nvidia");
  CHECK(inventory.switches.size() == 2);
  REQUIRE(inventory.notes.size() == 1);
  CHECK(inventory.notes[0].starts_with("2 NVSwitches stay with this host"));
  // One that nvidia-smi does not name goes by its ids.
  CHECK(inventory.groups[3].cards[0].kind == "a100-sxm4-40gb");
  CHECK(inventory.groups[3].cards[0].facts.uuid.empty());
}

TEST_CASE("eight H100 lie on two nodes") {
  SimBox box;
  make_h100_box(box);
  const DeviceInventory inventory = look(box);
  REQUIRE(inventory.groups.size() == 8);
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(inventory.groups[i].cards[0].pci.numa == (i < 4 ? 0 : 1));
  }
  CHECK(inventory.switches.size() == 4);
}

TEST_CASE("the functions of a card go with it, and count for nothing") {
  SimBox box;
  make_consumer_box(box);
  const DeviceInventory inventory = look(box);
  REQUIRE(inventory.groups.size() == 1);
  CHECK(inventory.groups[0].cards.size() == 1);
  CHECK(kinds(inventory.groups[0].scan) == Texts{"0000:09:00.0 gpu", "0000:09:00.1 companion",
                                                 "0000:09:00.2 companion",
                                                 "0000:09:00.3 companion"});
}

TEST_CASE("two cards in one group are a pair") {
  SimBox box;
  make_shared_group_box(box);
  const DeviceInventory inventory = look(box);
  REQUIRE(inventory.groups.size() == 1);
  CHECK(inventory.groups[0].cards.size() == 2);
  box.add_file("/var/lib/fuse/device-roles.txt", "0000:28:00.0 off\n");
  const DeviceInventory kept = look(box);
  CHECK(states(kept) == Texts{"0000:27:00.0 unsafe", "0000:28:00.0 off"});
  CHECK(first_card(kept).reason == "0000:28:00.0 in the same IOMMU group is off");
}

TEST_CASE("a bridge in the group stays where it is, an NVMe makes it unsafe") {
  SimBox bridge;
  make_bridge_box(bridge);
  const DeviceInventory viable = look(bridge);
  CHECK(kinds(viable.groups[0].scan).front() == "0000:00:01.0 bridge");
  CHECK(first_card(viable).state == CardState::unbound);

  SimBox nvme;
  make_nvme_box(nvme);
  const GpuCard card = first_card(look(nvme));
  CHECK(card.state == CardState::unsafe);
  CHECK(card.reason ==
        "IOMMU group 12 also holds 0000:04:00.0 (NVMe, 2646:2263, driver nvme), which this host "
        "would lose");
}

TEST_CASE("an NVSwitch is no bridge, and a card without a group is no offer") {
  SimBox box;
  box.add({.address = "0000:0f:00.0", .driver = "nvidia", .group = "5"});
  box.add({.address = "0000:10:00.0", .device = "1af1", .code = "068000", .group = "5"});
  box.add({.address = "0000:11:00.0", .driver = "nvidia"});
  const DeviceInventory inventory = look(box);
  CHECK(first_card(inventory).reason ==
        "IOMMU group 5 also holds 0000:10:00.0 (NVSwitch, 10de:1af1, no driver), which this host "
        "would lose");
  CHECK(inventory.groups[1].cards[0].reason == "it is in no IOMMU group");
  CHECK(inventory.groups[1].cards[0].hint.find("VT-d") != std::string::npos);
}

TEST_CASE("cards of other vendors are looked for when asked") {
  SimBox box;
  make_amd_box(box);
  CHECK(look(box).groups.empty());
  const DeviceInventory inventory = look(box, {.vendors = {"1002", "10de"}});
  CHECK(states(inventory) == Texts{"0000:2d:00.0 unbound"});
  CHECK(first_card(inventory).kind == "1002-73bf");
  CHECK(kinds(inventory.groups[0].scan).back() == "0000:2d:00.1 companion");
}

TEST_CASE("the console's card is left alone until the operator says otherwise") {
  SimBox box;
  make_display_box(box);
  CHECK(states(look(box)) == Texts{"0000:c1:00.0 display", "0000:c2:00.0 unbound"});
  box.add_file("/var/lib/fuse/device-roles.txt", "0000:C1:00.0 whole\n0000:c2:00.0 mig\n");
  CHECK(states(look(box)) == Texts{"0000:c1:00.0 unbound", "0000:c2:00.0 mig"});
  box.add_file("/var/lib/fuse/device-roles.txt", "0000:c1:00.0 mine\n");
  const auto wrong = read_inventory(box, paths, {});
  REQUIRE_FALSE(wrong);
  CHECK(wrong.error().message ==
        "/var/lib/fuse/device-roles.txt: 0000:c1:00.0 has role \"mine\", and the roles are whole, "
        "mig and off");
}

TEST_CASE("virtual functions are no cards, and their card is not handed over") {
  SimBox box;
  make_virtual_function_box(box);
  const DeviceInventory inventory = look(box);
  CHECK(states(inventory) == Texts{"0000:41:00.0 unsafe"});
  CHECK(first_card(inventory).reason == "it has 2 virtual functions switched on");
}

TEST_CASE("a card in MIG mode is never handed over whole") {
  SimBox box;
  make_display_box(box);
  const auto answer = [](std::string modes) {
    return [modes](const Texts& argv) -> std::optional<SimBox::Answer> {
      if (argv.front() != "nvidia-smi") return std::nullopt;
      return SimBox::Answer{
          smi_csv_of({cat("1, GPU-b, NVIDIA A100-SXM4-80GB, 00000000:C2:00.0, "
                          "81920 MiB, 550.54.15, 8.0, ",
                          modes)})};
    };
  };
  for (const std::string modes : {"Enabled, Enabled", "Disabled, Enabled", "Enabled, Disabled"}) {
    box.on_run = answer(modes);
    CHECK(states(look(box)).back() == "0000:c2:00.0 mig");
  }
  box.on_run = answer("[N/A], [N/A]");
  CHECK(states(look(box)).back() == "0000:c2:00.0 unbound");
}

TEST_CASE("a card is ready when its whole group is on vfio-pci and nothing has it open") {
  SimBox box;
  make_consumer_box(box);
  for (const std::string function : {"0", "1", "2"}) {
    box.unbind("0000:09:00." + function);
    box.bind("0000:09:00." + function, "vfio-pci");
  }
  CHECK(first_card(look(box)).reason == "0000:09:00.3 has no driver");
  box.bind("0000:09:00.3", "vfio-pci");
  CHECK(first_card(look(box)).state == CardState::ready);
  CHECK(first_card(look(box)).reason.empty());

  box.add_process(812, "qemu-system-x86", "fuse-agent.service", {"/dev/kvm", "/dev/vfio/21"});
  const GpuCard held = first_card(look(box));
  CHECK(held.state == CardState::in_use);
  CHECK(held.reason == "pid 812 (qemu-system-x86, fuse-agent.service) has /dev/vfio/21 open");
}

TEST_CASE("who has a card on the host's driver open is named, with how to end it") {
  SimBox box;
  make_a100_box(box);
  box.add_file("/proc/driver/nvidia/gpus/0000:0f:00.0/information",
               "Model: \t\t NVIDIA A100\nDevice Minor: \t 3\n");
  box.add_process(77, "python3", "train.service", {"/dev/nvidiactl", "/dev/nvidia3"});
  const DeviceInventory inventory = look(box);
  CHECK(first_card(inventory).state == CardState::in_use);
  CHECK(first_card(inventory).reason == "pid 77 (python3, train.service) has /dev/nvidia3 open");
  CHECK(first_card(inventory).hint == "stop it: systemctl stop train.service");
  CHECK(inventory.groups[1].cards[0].state == CardState::unbound);
}

TEST_CASE("a card that does not answer, or failed, is sick; one set aside stays so") {
  SimBox box;
  make_a100_box(box);
  box.add_file("/sys/devices/pci0000:00/0000:0f:00.0/config", std::string(64, '\xff'));
  box.on_run = [](const Texts& argv) -> std::optional<SimBox::Answer> {
    if (argv.front() == "dmesg") {
      return SimBox::Answer{"[ 7.1] NVRM: Xid (PCI:0000:10:00): 79, pid=1, GPU has fallen off\n"};
    }
    return SimBox::Answer{
        smi_csv_of({"2, [GPU requires reset], NVIDIA A100, 00000000:87:00.0, "
                    "[GPU requires reset], 550, 8.0, Disabled, Disabled"})};
  };
  REQUIRE(quarantine_card(box, paths, "0000:88:00.0", "reset failed | after VM x"));
  const DeviceInventory inventory = look(box);
  CHECK(states(inventory) == Texts{"0000:0f:00.0 sick", "0000:10:00.0 sick", "0000:87:00.0 sick",
                                   "0000:88:00.0 quarantined"});
  CHECK(inventory.groups[0].cards[0].reason ==
        "its configuration space reads ffff where its vendor 10de should be: it does not answer");
  CHECK(inventory.groups[1].cards[0].reason ==
        "the kernel's log has Xid 79 of it: pid=1, GPU has fallen off");
  CHECK(inventory.groups[2].cards[0].reason == "nvidia-smi says [GPU requires reset] of it");
  CHECK(inventory.groups[3].cards[0].reason == "reset failed after VM x");
  // The first reason stays.
  REQUIRE(quarantine_card(box, paths, "0000:88:00.0", "another"));
  CHECK(look(box).groups[3].cards[0].reason == "reset failed after VM x");
}

TEST_CASE("what the kernel's log says of a card is over once it was reset") {
  SimBox box;
  make_a100_box(box);
  box.add_file("/proc/uptime", "9.5 30.0\n");
  box.add_file("/proc/sys/kernel/random/boot_id", "this-boot\n");
  std::string log = "[    7.1] NVRM: Xid (PCI:0000:10:00): 79, pid=1, GPU has fallen off\n";
  box.on_run = [&](const Texts& argv) -> std::optional<SimBox::Answer> {
    if (argv.front() == "dmesg") return SimBox::Answer{log};
    return std::nullopt;
  };
  REQUIRE(note_resets(box, paths, {"0000:0f:00.0"}));
  CHECK(look(box).groups[1].cards[0].state == CardState::sick);
  REQUIRE(note_resets(box, paths, {"0000:10:00.0"}));
  CHECK(look(box).groups[1].cards[0].state == CardState::unbound);
  SECTION("but not what it says after that") {
    log += "[   11.0] NVRM: Xid (PCI:0000:10:00): 31, pid=2, MMU fault\n";
    CHECK(look(box).groups[1].cards[0].state == CardState::sick);
  }
  SECTION("nor in another life of the host") {
    box.add_file("/proc/sys/kernel/random/boot_id", "next-boot\n");
    CHECK(look(box).groups[1].cards[0].state == CardState::sick);
  }
}

TEST_CASE("a region without an address is the firmware's fault, and said") {
  SimBox box;
  make_a100_box(box);
  box.add_file("/sys/devices/pci0000:00/0000:0f:00.0/resource",
               "0x0000000000000000 0x0000000000ffffff 0x0000000000040200\n");
  const Texts notes = look(box).notes;
  CHECK(std::ranges::find(notes,
                          "0000:0f:00.0: BAR 0 has no address: switch on \"Above 4G Decoding\" in "
                          "the firmware") != notes.end());
}

TEST_CASE("facts from before a bind are what is known after it") {
  SimBox box;
  make_display_box(box);
  box.add_file("/var/lib/fuse/device-facts.txt",
               "0000:c2:00.0 | driver=nvidia;uuid=GPU-kept;model=NVIDIA A100-SXM4-80GB\n");
  CHECK(look(box).groups[1].cards[0].facts.uuid == "GPU-kept");
  // Another program's inventory names the card by its place alone.
  REQUIRE(box.remove_all("/var/lib/fuse/device-facts.txt"));
  box.add_file("/var/lib/fuse/vfio-inventory.txt",
               "1 a100 0000:c2:00.0 0000:c2:00.1 | uuid=GPU-old;model=NVIDIA A100\n");
  CHECK(look(box).groups[1].cards[0].facts.uuid == "GPU-old");
}

TEST_CASE("what was looked at is said in a sentence") {
  SimBox box;
  box.add({.address = "0000:00:00.0", .vendor = "8086", .code = "060000"});
  box.add({.address = "0000:00:01.0", .vendor = "1234", .code = "030000"});
  box.add({.address = "0000:00:02.0", .code = "040300"});
  CHECK(look(box).summary ==
        "looked at 3 PCI devices under /sys/bus/pci/devices: no display controller of vendor "
        "10de");
  box.add({.address = "0000:41:00.0", .driver = "vfio-pci", .group = "23"});
  box.add({.address = "0000:42:00.0", .code = "030000"});
  fs::create_directories(box.root() / "sys/bus/pci/devices/0000:43:00.0");
  CHECK(look(box).summary ==
        "looked at 6 PCI devices under /sys/bus/pci/devices: 2 of vendor 10de: "
        "0000:41:00.0 (10de:20b0, driver vfio-pci, IOMMU group 23), "
        "0000:42:00.0 (10de:20b0, no driver, no IOMMU group); 1 could not be read");
}

TEST_CASE("a host without a PCI bus says so") {
  SimBox box;
  fs::remove_all(box.root() / "sys");
  CHECK(look(box).summary.starts_with("could not look at /sys/bus/pci/devices: "));
}

}  // namespace
}  // namespace fuse
