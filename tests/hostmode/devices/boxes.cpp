#include "tests/hostmode/devices/boxes.h"

#include "base/text.h"

namespace fuse {

namespace {

constexpr std::uint64_t gib = std::uint64_t{1} << 30U;

void add_port(SimBox& box, const std::string& address, const std::string& group) {
  box.add({.address = address,
           .vendor = "8086",
           .device = "352a",
           .code = "060400",
           .driver = "pcieport",
           .group = group});
}

void add_switches(SimBox& box, const std::vector<std::string>& buses, const std::string& device) {
  for (const std::string& bus : buses) {
    box.add({.address = cat("0000:", bus, ":00.0"),
             .device = device,
             .code = "068000",
             .group = cat("1", std::stoi(bus, nullptr, 16))});
  }
}

// The four functions of a consumer card.
void add_consumer_card(SimBox& box, const std::string& slot, const std::string& group) {
  box.add({.address = slot + ".0",
           .device = "1e84",
           .code = "030000",
           .driver = "nvidia",
           .group = group,
           .boot_vga = false,
           .vram = gib / 4});
  box.add({.address = slot + ".1",
           .device = "10f8",
           .code = "040300",
           .driver = "snd_hda_intel",
           .group = group});
  box.add({.address = slot + ".2",
           .device = "1ad8",
           .code = "0c0330",
           .driver = "xhci_hcd",
           .group = group});
  box.add({.address = slot + ".3", .device = "1ad9", .code = "0c8000", .group = group});
}

}  // namespace

void make_a100_box(SimBox& box) {
  const std::vector<std::string> buses = {"0f", "10", "87", "88"};
  for (std::size_t i = 0; i < buses.size(); ++i) {
    const std::string group = cat(20 + i);
    add_port(box, cat("0000:00:0", i + 1, ".0"), cat(i));
    box.add({.address = cat("0000:", buses[i], ":00.0"),
             .driver = "nvidia",
             .group = group,
             .numa = i < 2 ? 0 : 1,
             .virtual_functions = 0,
             .vram = 64 * gib});
  }
  add_switches(box, {"c4", "c5"}, "1af1");
}

void make_h100_box(SimBox& box) {
  const std::vector<std::string> buses = {"1b", "43", "52", "61", "9d", "c3", "d1", "df"};
  for (std::size_t i = 0; i < buses.size(); ++i) {
    box.add({.address = cat("0000:", buses[i], ":00.0"),
             .device = "2330",
             .driver = "nvidia",
             .group = cat(40 + i),
             .numa = i < 4 ? 0 : 1,
             .virtual_functions = 0,
             .vram = 128 * gib});
  }
  add_switches(box, {"05", "06", "07", "08"}, "22a3");
}

void make_consumer_box(SimBox& box) {
  add_port(box, "0000:00:03.1", "1");
  add_consumer_card(box, "0000:09:00", "21");
}

void make_shared_group_box(SimBox& box) {
  for (const std::string bus : {"27", "28"}) {
    box.add({.address = cat("0000:", bus, ":00.0"),
             .device = "1db6",
             .driver = "nvidia",
             .group = "30",
             .numa = 0,
             .vram = 32 * gib});
  }
}

void make_bridge_box(SimBox& box) {
  add_port(box, "0000:00:01.0", "1");
  add_consumer_card(box, "0000:01:00", "1");
}

void make_nvme_box(SimBox& box) {
  add_port(box, "0000:02:00.0", "12");
  box.add({.address = "0000:04:00.0",
           .vendor = "2646",
           .device = "2263",
           .code = "010802",
           .driver = "nvme",
           .group = "12"});
  add_consumer_card(box, "0000:05:00", "12");
}

void make_amd_box(SimBox& box) {
  box.add({.address = "0000:2d:00.0",
           .vendor = "1002",
           .device = "73bf",
           .code = "030000",
           .driver = "amdgpu",
           .group = "24",
           .boot_vga = false,
           .vram = 16 * gib});
  box.add({.address = "0000:2d:00.1",
           .vendor = "1002",
           .device = "ab28",
           .code = "040300",
           .driver = "snd_hda_intel",
           .group = "24"});
}

void make_display_box(SimBox& box) {
  box.add({.address = "0000:c1:00.0",
           .device = "1fb0",
           .code = "030000",
           .driver = "nvidia",
           .group = "50",
           .boot_vga = true,
           .vram = gib / 4});
  box.add({.address = "0000:c2:00.0",
           .device = "20b2",
           .driver = "nvidia",
           .group = "51",
           .vram = 128 * gib});
}

void make_virtual_function_box(SimBox& box) {
  box.add({.address = "0000:41:00.0",
           .driver = "nvidia",
           .group = "60",
           .virtual_functions = 2,
           .vram = 64 * gib});
  for (const std::string function : {"4", "5"}) {
    box.add({.address = cat("0000:41:00.", function),
             .driver = "nvidia",
             .group = cat("6", function),
             .physical = "0000:41:00.0"});
  }
}

std::string smi_csv_of(const std::vector<std::string>& rows) {
  return cat(
      "index, uuid, name, pci.bus_id, memory.total [MiB], driver_version, compute_cap, "
      "mig.mode.current, mig.mode.pending\n",
      join(rows, "\n"), "\n");
}

}  // namespace fuse
