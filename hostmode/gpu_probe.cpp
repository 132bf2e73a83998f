#include "hostmode/gpu_probe.h"

#include <cstddef>
#include <optional>

#include "base/text.h"

namespace fuse {

namespace {

constexpr std::string_view devices_dir = "/sys/bus/pci/devices";
constexpr std::string_view nvidia = "0x10de";

// "0x10de\n" -> "0x10de".
Result<std::string> read_word(Host& host, const fs::path& file) {
  const auto text = host.read_file(file);
  if (!text) return text.error();
  return lowercase(trim(*text));
}

// The last part of a sysfs link, "" when there is none: a device may have no
// driver, and has no group while the IOMMU is off.
std::string link_name(Host& host, const fs::path& link) {
  const auto target = host.read_link(link);
  return target ? target->filename().native() : "";
}

bool is_display_controller(std::string_view pci_class) {
  return pci_class.starts_with("0x0300") || pci_class.starts_with("0x0302");
}

// The GPU at `address`, nothing when it is something else.
Result<std::optional<ProbedGpu>> read_gpu(Host& host, const std::string& address) {
  const fs::path dir = fs::path(devices_dir) / address;
  const auto vendor = read_word(host, dir / "vendor");
  if (!vendor) return vendor.error();
  const auto pci_class = read_word(host, dir / "class");
  if (!pci_class) return pci_class.error();
  if (*vendor != nvidia || !is_display_controller(*pci_class)) return std::optional<ProbedGpu>();
  const auto device = read_word(host, dir / "device");
  if (!device) return device.error();
  return std::optional(ProbedGpu{.address = address,
                                 .device = device->starts_with("0x") ? device->substr(2) : *device,
                                 .driver = link_name(host, dir / "driver"),
                                 .group = link_name(host, dir / "iommu_group")});
}

std::string describe(const ProbedGpu& gpu) {
  return cat(gpu.address, " (10de:", gpu.device, ", ",
             gpu.driver.empty() ? "no driver" : cat("driver ", gpu.driver), ", ",
             gpu.group.empty() ? "no IOMMU group" : cat("IOMMU group ", gpu.group), ")");
}

}  // namespace

GpuProbe probe_gpus(Host& host) {
  GpuProbe probe;
  const auto addresses = host.list_dir(devices_dir);
  if (!addresses) {
    probe.summary = cat("could not look at ", devices_dir, ": ", addresses.error().message);
    return probe;
  }
  std::size_t unreadable = 0;
  std::vector<std::string> found;
  for (const std::string& address : *addresses) {
    const auto gpu = read_gpu(host, address);
    if (!gpu) ++unreadable;
    if (!gpu || !*gpu) continue;
    found.push_back(describe(**gpu));
    probe.gpus.push_back(**gpu);
  }
  probe.summary = cat("looked at ", addresses->size(), " PCI devices under ", devices_dir, ": ");
  if (found.empty()) {
    probe.summary += "no display controller of vendor 10de";
  } else {
    probe.summary += cat(found.size(), " of vendor 10de: ", join(found, ", "));
  }
  if (unreadable != 0) probe.summary += cat("; ", unreadable, " could not be read");
  return probe;
}

}  // namespace fuse
