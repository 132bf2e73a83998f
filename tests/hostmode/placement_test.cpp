#include "base/text.h"
#include "hostmode/hypervisor.h"
#include "hostmode/memlock.h"
#include "hostmode/memory_plan.h"
#include "hostmode/mmio_window.h"
#include "tests/catch.h"
#include "tests/hostmode/devices/sim_box.h"

namespace fuse {
namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30U;

HostNode node(std::int32_t id, std::int64_t free_mb, std::int64_t free_huge_mb = 0) {
  return {.id = id,
          .free_mb = free_mb,
          .page_kib = free_huge_mb > 0 ? 2048 : 0,
          .free_huge_mb = free_huge_mb};
}

TEST_CASE("a VM's memory is on the node of its devices") {
  const auto plan = plan_memory(4096, 4, {1, 1}, {node(0, 9000), node(1, 9000)});
  REQUIRE(plan.shares.size() == 1);
  CHECK(plan.shares[0] == MemoryShare{.node = 1, .memory_mb = 4096, .cpus = 4});
  CHECK(plan.note.empty());
}

TEST_CASE("devices on two nodes split it, with nothing lost") {
  const auto plan = plan_memory(4097, 5, {0, 1, std::nullopt}, {node(0, 9000), node(1, 9000)});
  REQUIRE(plan.shares.size() == 2);
  CHECK(plan.shares[0] == MemoryShare{.node = 0, .memory_mb = 2049, .cpus = 3});
  CHECK(plan.shares[1] == MemoryShare{.node = 1, .memory_mb = 2048, .first_cpu = 3, .cpus = 2});
}

TEST_CASE("huge pages are used where every node has enough of them, whole") {
  const std::vector<HostNode> nodes = {node(0, 100, 4096), node(1, 100, 2048)};
  CHECK(plan_memory(4096, 4, {0, 1}, nodes).shares[1].page_kib == 2048);
  // Half of what is asked for is not.
  CHECK(plan_memory(6144, 4, {0, 1}, nodes).shares.empty());
  CHECK(plan_memory(6144, 4, {0, 1}, nodes).note ==
        "node 0 of the devices has 100 MiB free of the 3072 MiB that should be there");
  CHECK(plan_memory(1023, 1, {0}, {node(0, 5000, 4096), node(1, 1)}).shares[0].page_kib == 0);
  // On a host with one node that is all there is to say.
  const auto single = plan_memory(2048, 1, {std::nullopt}, {node(0, 100, 4096)});
  REQUIRE(single.shares.size() == 1);
  CHECK(single.shares[0] == MemoryShare{.memory_mb = 2048, .cpus = 1, .page_kib = 2048});
}

TEST_CASE("memory is left to the kernel where nothing can be said, or too little is free") {
  CHECK(plan_memory(4096, 4, {}, {node(0, 9000), node(1, 9000)}) == MemoryPlan{});
  CHECK(plan_memory(4096, 4, {std::nullopt}, {node(0, 9000), node(1, 9000)}) == MemoryPlan{});
  CHECK(plan_memory(4096, 4, {7}, {node(0, 9000), node(1, 9000)}) == MemoryPlan{});
  CHECK(plan_memory(4096, 4, {0}, {node(0, 9000)}) == MemoryPlan{});
  const auto poor = plan_memory(4096, 4, {1}, {node(0, 9000), node(1, 300)});
  CHECK(poor.shares.empty());
  CHECK(poor.note == "node 1 of the devices has 300 MiB free of the 4096 MiB that should be there");
  CHECK(plan_memory(4096, 1, {0, 1}, {node(0, 9000), node(1, 9000)}).note ==
        "its 1 CPUs are fewer than the 2 nodes that its devices are on");
}

TEST_CASE("nodes are read with what they have free") {
  SimBox box;
  const std::string dir = "/sys/devices/system/node/node";
  box.add_file(dir + "1/meminfo",
               "Node 1 MemTotal:       2097152 kB\nNode 1 MemFree:         1048576 kB\n"
               "Node 1 Active(file):       2048 kB\nNode 1 Inactive(file):  1024 kB\n"
               "Node 1 MemUsed:         1048576 kB\n");
  box.add_file(dir + "1/hugepages/hugepages-2048kB/free_hugepages", "512\n");
  box.add_file(dir + "1/hugepages/hugepages-1048576kB/free_hugepages", "3\n");
  box.add_file(dir + "0/meminfo", "Node 0 MemFree: 4096 kB\n");
  box.add_file("/sys/devices/system/node/online", "0-1\n");
  const auto nodes = read_host_nodes(box);
  REQUIRE(nodes.size() == 2);
  CHECK(nodes[0].free_mb == 4);
  CHECK(nodes[0].page_kib == 0);
  CHECK(nodes[1].id == 1);
  CHECK(nodes[1].free_mb == 1027);
  CHECK(nodes[1].page_kib == 1048576);
  CHECK(nodes[1].free_huge_mb == 3072);
}

TEST_CASE("the window for regions is as large as the cards' need, a slot a power of two") {
  const auto bars = [](std::uint64_t bytes) {
    return std::vector<PciBar>{{.index = 0, .size = 16U << 20U},
                               {.index = 1, .size = bytes, .prefetchable = true},
                               {.index = 3, .size = 32U << 20U, .prefetchable = true},
                               {.index = 5, .size = 128, .memory = false}};
  };
  CHECK(mmio_window_gib({}) == 0);
  CHECK(mmio_window_gib({{"0000:09:00.0", bars(gib / 4)}}) == 0);
  CHECK(mmio_window_gib({{"0000:41:00.0", bars(64 * gib)}}) == 128 + 32);
  // Functions of one slot lie together, those of two do not.
  CHECK(mmio_window_gib({{"0000:41:00.0", bars(20 * gib)}, {"0000:41:00.1", bars(20 * gib)}}) ==
        64 + 32);
  CHECK(mmio_window_gib({{"0000:41:00.0", bars(20 * gib)}, {"0000:42:00.0", bars(20 * gib)}}) ==
        32 + 32 + 32);
  std::map<std::string, std::vector<PciBar>> eight;
  for (int i = 0; i < 8; ++i) eight[cat("0000:1", i, ":00.0")] = bars(128 * gib);
  CHECK(mmio_window_gib(eight) == 8 * 256 + 32);
}

TEST_CASE("the window stays within what the CPU can address") {
  CHECK(window_within(160, 2048, 46) == 160);
  CHECK(window_within(2080, 2048, 40) == 1024 - 2 - 16);
  CHECK(window_within(2080, 2000 * 1024, 40) == 0);
  CHECK(window_within(160, 2048, 0) == 0);
  CHECK(window_within(0, 2048, 46) == 0);
  CHECK(physical_bits("processor\t: 0\naddress sizes\t: 46 bits physical, 48 bits virtual\n") ==
        46);
  CHECK(physical_bits("processor\t: 0\n") == 0);
}

TEST_CASE("what QEMU may lock is raised as far as it goes, and told when that is too little") {
  constexpr std::uint64_t none = LockLimit::none;
  const std::uint64_t need = bytes_to_lock(2048);
  CHECK(need == 3 * gib);
  CHECK(raised_lock_limit({8 << 20, 8 << 20}, need, true).value() == LockLimit{none, none});
  CHECK(raised_lock_limit({none, none}, need, false).value() == LockLimit{none, none});
  CHECK(raised_lock_limit({8 << 20, 4 * gib}, need, false).value() == LockLimit{4 * gib, 4 * gib});
  const auto refused = raised_lock_limit({8 << 20, gib}, need, false);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message ==
        "a vm with devices has all its memory locked: that takes 3 GiB, and this user may lock "
        "1 GiB");
}

TEST_CASE("what QEMU says of devices is explained") {
  const auto explains = [](const std::string& words, const std::string& part) {
    INFO(words);
    CHECK(meaning_of(words).find(part) != std::string::npos);
  };
  const std::string vfio = "-device vfio-pci,host=0000:01:00.0: vfio 0000:01:00.0: ";
  explains(vfio +
               "group 4 is not viable Please ensure all devices within the iommu_group are "
               "bound to their vfio bus driver.",
           "fuse agent bind");
  explains(vfio + "failed to open /dev/vfio/4: Device or resource busy", "another process");
  explains(vfio + "failed to open /dev/vfio/4: No such file or directory", "fuse agent bind");
  explains(vfio + "failed to open /dev/vfio/4: Permission denied", "may not open");
  explains(vfio +
               "error getting device from group 4: No such device Verify all devices in group "
               "4 are bound to vfio-<bus> or pci-stub and not already in use",
           "a bridge");
  explains(vfio + "device is already attached", "named twice");
  explains("qemu-system-x86_64: Failed to setgid(65534)", "FUSE_QEMU_USER=root");
  explains(vfio + "no such host device: No such file or directory", "fuse agent probe");
  explains(
      "-device vfio-pci,sysfsdev=/sys/bus/mdev/devices/U: vfio /sys/bus/mdev/devices/U: no "
      "such host device: No such file or directory",
      "fuse agent mig apply");
  explains(vfio + "no iommu_group found: No such file or directory", "IOMMU is off");
  explains(vfio + "Failed to set iommu for container: Operation not permitted", "interrupts");
  explains("VFIO_MAP_DMA failed: Cannot allocate memory", "LimitMEMLOCK");
  explains(vfio + "vfio_dma_map(0x5, 0x0, 0x8000000, 0x7f) = -12 (Cannot allocate memory)",
           "LimitMEMLOCK");
  CHECK(meaning_of(vfio + "something else").empty());
}

}  // namespace
}  // namespace fuse
