#pragma once

#include <string>
#include <vector>

#include "base/host.h"
#include "base/result.h"

namespace fuse {

// A display or 3D controller of NVIDIA's, as sysfs shows it.
struct ProbedGpu {
  std::string address{};  // 0000:41:00.0
  std::string device{};   // "20b0"
  std::string driver{};   // empty: none is bound
  std::string group{};    // IOMMU group; empty: the IOMMU is off
};

// What a look at the PCI bus found, and in words what it looked at.
struct GpuProbe {
  std::vector<ProbedGpu> gpus{};
  std::string summary{};
};

// Looks at every PCI device of the host.  Devices that cannot be read are counted
// and said, never taken for absent.
GpuProbe probe_gpus(Host& host);

}  // namespace fuse
