#include "hostmode/devices/inventory_files.h"

#include "base/text.h"
#include "hostmode/devices/gpu_models.h"
#include "hostmode/devices/kernel_log.h"
#include "hostmode/devices/pci_address.h"
#include "hostmode/devices/smi_csv.h"
#include "tests/catch.h"

namespace fuse {
namespace {

TEST_CASE("a VFIO inventory is read as it is written") {
  const std::string text =
      "# made by hand\n\n"
      "1 A100-SXM4-40GB 0000:0F:00.0 | bus_id=00000000:0F:00.0;uuid=GPU-a;model=NVIDIA "
      "A100-SXM4-40GB;memory_mb=40960;driver_version=550.54.15;compute_cap=8.0;mig_mode=Disabled;"
      "colour=green\r\n"
      "  2 v100   27:00.0 28:00.0 | uuid=GPU-b ; memory_mb=many | uuid=GPU-c\n"
      "1 rtx 0000:09:00.0 0000:09:00.1\n";
  const auto groups = parse_vfio_inventory(text, "f");
  REQUIRE(groups);
  REQUIRE(groups->size() == 3);
  CHECK((*groups)[0] == InventoryGroup{.count = 1,
                                       .kind = "a100-sxm4-40gb",
                                       .slots = {"0000:0f:00.0"},
                                       .gpus = {{.bus_id = "00000000:0F:00.0",
                                                 .uuid = "GPU-a",
                                                 .model = "NVIDIA A100-SXM4-40GB",
                                                 .memory_mb = 40960,
                                                 .driver_version = "550.54.15",
                                                 .compute_cap = "8.0",
                                                 .mig_mode = "Disabled"}}});
  CHECK((*groups)[1].slots == std::vector<std::string>{"0000:27:00.0", "0000:28:00.0"});
  CHECK((*groups)[1].gpus[0].memory_mb == 0);
  CHECK((*groups)[1].gpus[1].uuid == "GPU-c");
  CHECK((*groups)[2].gpus.empty());
  CHECK(parse_vfio_inventory(to_text(*groups), "f").value() == *groups);
}

TEST_CASE("a line of an inventory that is not as described is named by file and line") {
  const auto complaint = [](const std::string& line) {
    const auto groups = parse_vfio_inventory(cat("# head\n\n", line, "\n"), "/q/vfio.txt");
    return groups ? std::string("read") : groups.error().message;
  };
  CHECK(complaint("1 a100") ==
        "/q/vfio.txt:3: a group is COUNT KIND SLOT [SLOT...] [| key=value;...]");
  CHECK(complaint("x a100 0000:01:00.0") == "/q/vfio.txt:3: \"x\" is not a number of GPUs");
  CHECK(complaint("0 a100 0000:01:00.0") == "/q/vfio.txt:3: \"0\" is not a number of GPUs");
  CHECK(complaint("1 a100 01:00") ==
        "/q/vfio.txt:3: \"01:00\" is not a PCI address, as in 0000:41:00.0");
  CHECK(complaint("1 a100 01:00.0 0000:01:00.0") == "/q/vfio.txt:3: 0000:01:00.0 is named twice");
  CHECK(complaint("2 a100 01:00.0") == "/q/vfio.txt:3: it counts 2 GPUs and names 1 functions");
  CHECK(complaint("1 a100 01:00.0 | uuid=a | uuid=b") ==
        "/q/vfio.txt:3: it describes 2 GPUs and counts 1");
  CHECK(complaint("1 a100 01:00.0 | uuid") == "/q/vfio.txt:3: \"uuid\" is not key=value");
  CHECK(complaint("1 a100 01:00.0\n1 a100 01:00.0") ==
        "/q/vfio.txt:4: 0000:01:00.0 is in a line above too");
}

TEST_CASE("a MIG inventory is read as it is written, and refused by file and line") {
  const auto instances = parse_mig_inventory(
      "1G.10GB A100 MIG-u1\n2g.20gb a100 MIG-u2 GPU-p | path=/sys/bus/mdev/devices/x;mig=MIG-m\n",
      "f");
  REQUIRE(instances);
  REQUIRE(instances->size() == 2);
  CHECK((*instances)[0] ==
        InventoryInstance{.profile = "1g.10gb", .kind = "a100", .uuid = "MIG-u1"});
  CHECK((*instances)[1] == InventoryInstance{.profile = "2g.20gb",
                                             .kind = "a100",
                                             .uuid = "MIG-u2",
                                             .parent = "GPU-p",
                                             .path = "/sys/bus/mdev/devices/x",
                                             .mig = "MIG-m"});
  CHECK(parse_mig_inventory(to_text(*instances), "f").value() == *instances);
  CHECK(parse_mig_inventory("1g.10gb a100\n", "m").error().message ==
        "m:1: an instance is PROFILE KIND UUID [PARENT_GPU_UUID] [| key=value;...]");
  CHECK(parse_mig_inventory("1g.5gb a u\n1g.5gb a u\n", "m").error().message ==
        "m:2: instance u is in a line above too");
}

TEST_CASE("what is written cannot break its line") {
  const std::vector<InventoryGroup> groups = {
      {.count = 1, .kind = "x", .slots = {"0000:01:00.0"}, .gpus = {{.model = "a;b|c\nd"}}}};
  CHECK(parse_vfio_inventory(to_text(groups), "f").value()[0].gpus[0].model == "a b c d");
  const std::map<std::string, KeptFacts> facts = {
      {"0000:01:00.0", {.driver = "nvidia", .gpu = {.uuid = "GPU-a"}}}, {"0000:01:00.1", {}}};
  CHECK(parse_kept_facts(to_text(facts), "f").value() == facts);
}

TEST_CASE("PCI addresses are one in all their spellings") {
  CHECK(pci_address("00000000:0F:00.0") == "0000:0f:00.0");
  CHECK(pci_address("0f:00.0") == "0000:0f:00.0");
  CHECK(pci_address("000b:00:00.0") == "000b:00:00.0");
  CHECK(pci_address("00010000:01:00.7") == "10000:01:00.7");
  CHECK(pci_slot("0000:9b:00") == "0000:9b:00");
  CHECK(pci_slot("00000000:9B:00.1") == "0000:9b:00");
  for (const std::string_view wrong :
       {"", "0f:00", "0000:0f:00.8", "0000:0f:00.", "0000:0f:00.00", "0f.0", "000:0f:00.0",
        "0000:zz:00.0", "0000:0f:00:00.0", "123456789:0f:00.0"}) {
    INFO(wrong);
    CHECK_FALSE(pci_address(wrong));
  }
}

TEST_CASE("nvidia-smi's table is read by the names in its head, whatever it calls no value") {
  const SmiCsv csv = parse_smi_csv(
      "Unable to determine the device handle for GPU0000:02:00.0: Unknown Error\n"
      "name, fan.speed [%], index, uuid, pci.bus_id, memory.total [MiB], mig.mode.current\n"
      "NVIDIA H100 80GB HBM3, [N/A], 1, GPU-x, 00000009:01:00.0, 81559 MiB, Enabled\n"
      "Quadro, [Not Supported], 0, [Unknown Error], 00000000:01:00.0, ERR!, [N/A]\n"
      "stray\n");
  CHECK(csv.remarks ==
        std::vector<std::string>{
            "Unable to determine the device handle for GPU0000:02:00.0: Unknown Error", "stray"});
  const auto gpus = smi_gpus(csv);
  REQUIRE(gpus.size() == 2);
  CHECK(gpus[0].address == "0009:01:00.0");
  CHECK(gpus[0].index == 1);
  CHECK(gpus[0].memory_mb == 81559);
  CHECK(gpus[0].mig_current == "Enabled");
  CHECK(gpus[1].uuid.empty());
  CHECK(gpus[1].memory_mb == 0);
  CHECK(gpus[1].mig_current.empty());
  CHECK(gpus[1].complaint == "[Unknown Error]");
  for (const std::string_view none :
       {"[N/A]", "N/A", "", "[Not Supported]", "[Unknown Error]", "[GPU requires reset]",
        "[Requested functionality has been deprecated]", "ERR!"}) {
    CHECK(is_no_value(none));
  }
  CHECK_FALSE(is_no_value("None"));
}

TEST_CASE("faults are found in the kernel's log") {
  const auto events = parse_xids(
      "[12345.5] NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=nvidia-smi, Timeout\n"
      "[Sun Feb 23 16:24:18 2025] NVRM: Xid (PCI:0000:3B:00): 79\n"
      "NVRM: Xid (PCI:zz): 31, x\nNVRM: Xid (PCI:0000:01:00): many\nusb 1-1: new device\n");
  REQUIRE(events.size() == 2);
  CHECK(events[0].slot == "0000:9b:00");
  CHECK(events[0].xid == 119);
  CHECK(events[0].at == 12345.5);
  CHECK(events[0].words == "pid=2024380, name=nvidia-smi, Timeout");
  CHECK(events[1].slot == "0000:3b:00");
  CHECK_FALSE(events[1].at);
}

TEST_CASE("a card's kind is its model, without its maker, or its ids") {
  CHECK(kind_of_card("NVIDIA A100-SXM4-40GB", "10de", "20b0") == "a100-sxm4-40gb");
  CHECK(kind_of_card("NVIDIA RTX PRO 6000 Blackwell", "10de", "") == "rtx-pro-6000-blackwell");
  CHECK(kind_of_card("", "10de", "20b7") == "a30");
  CHECK(kind_of_card("", "10de", "ffff") == "10de-ffff");
}

}  // namespace
}  // namespace fuse
