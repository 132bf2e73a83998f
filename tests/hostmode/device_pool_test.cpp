#include "hostmode/device_pool.h"

#include "base/text.h"
#include "tests/catch.h"
#include "tests/hostmode/devices/boxes.h"

namespace fuse {
namespace {

TEST_CASE("the pool is what the inventory has, but for what is seen to be unfit") {
  SimBox box;
  make_display_box(box);
  make_shared_group_box(box);
  const DevicePaths paths{.dir = "/var/lib/fuse"};
  box.add_file("/var/lib/fuse/vfio-inventory.txt",
               "2 v100 0000:27:00.0 0000:28:00.0 | uuid=GPU-a;model=Tesla V100 | "
               "bus_id=00000000:28:00.0;uuid=GPU-b;memory_mb=32768;mig_mode=[N/A]\n"
               "1 a100 0000:c2:00.0 | uuid=GPU-c;mig_mode=Disabled\n"
               "1 l4 0000:f1:00.0\n");
  box.add_file("/var/lib/fuse/mig-inventory.txt",
               "1g.10gb a100 U1 GPU-x\n1g.10gb a100 U2 GPU-x | path=/sys/bus/pci/devices/"
               "0000:41:00.4\n");
  for (const std::string bus : {"27", "28"}) {
    box.unbind(cat("0000:", bus, ":00.0"));
    box.bind(cat("0000:", bus, ":00.0"), "vfio-pci");
  }
  const auto pool = read_device_pool(box, paths, InventoryDepth::use).value();
  HostCapacity capacity;
  add_devices(capacity, pool);

  // The A100 is on its driver: not bound, so not on offer.
  CHECK(capacity.gpus == 3);
  CHECK(capacity.gpu_kind.empty());
  REQUIRE(capacity.gpu_devices.size() == 3);
  for (std::int32_t i = 0; i < 3; ++i) CHECK(capacity.gpu_devices[i].index == i);
  CHECK(capacity.gpu_devices[0].uuid == "GPU-a");
  CHECK(capacity.gpu_devices[0].pci_bus_id == "0000:27:00.0");
  CHECK(capacity.gpu_devices[0].iommu_group == "30");
  CHECK(capacity.gpu_devices[0].numa_node == 0);
  CHECK(capacity.gpu_devices[1].pci_bus_id == "00000000:28:00.0");
  CHECK(capacity.gpu_devices[1].memory_mb == 32768);
  CHECK_FALSE(capacity.gpu_devices[1].mig_capable);
  // A card that the bus does not show is the operator's word.
  CHECK(capacity.gpu_devices[2].pci_bus_id == "0000:f1:00.0");
  CHECK(capacity.gpu_devices[2].iommu_group.empty());
  CHECK(capacity.mig_profiles == std::map<std::string, std::int32_t>{{"1g.10gb", 2}});
  CHECK(capacity.mig_instances[1].uuid == "U2");

  CreateVmRequest two;
  two.gpus = 2;
  const auto devices = allocate_devices(two, pool, {}).value();
  REQUIRE(devices.size() == 2);
  CHECK(devices[0].address == "0000:27:00.0");
  CHECK(devices[0].uuid == "GPU-a");
  CHECK(devices[1].uuid == "GPU-b");
  CHECK(devices[1].group == "30");
  CHECK_FALSE(allocate_devices(two, pool, {"0000:28:00.0"}));
  CreateVmRequest slice;
  slice.gpus = 2;
  slice.gpu_profile = "1g.10gb";
  const auto slices = allocate_devices(slice, pool, {}).value();
  CHECK(slices[0].kind == "mdev");
  CHECK(slices[1].kind == "vf");
  CHECK(slices[1].address == "0000:41:00.4");
  CHECK_FALSE(allocate_devices(slice, pool, {"U2"}));

  // What a process has open is not given to another.
  box.add_process(5, "qemu", "old.service", {"/dev/vfio/30"});
  const auto busy = read_device_pool(box, paths, InventoryDepth::use).value();
  CHECK_FALSE(allocate_devices(two, busy, {}));
  HostCapacity same;
  add_devices(same, busy);
  CHECK(same.gpus == 3);
}

}  // namespace
}  // namespace fuse
