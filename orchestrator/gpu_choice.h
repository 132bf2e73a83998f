#pragma once

#include <variant>

#include "orchestrator/scheduler.h"

namespace fuse {

struct GpuChoice {
  std::vector<std::string> gpu_device_uuids{};
  std::vector<std::string> mig_instance_uuids{};
};

// Which free devices of the host would serve `spec`, or why none would.  Whole
// devices go in complete IOMMU groups, on one NUMA node where that works, and so
// that as much as possible stays together; MIG instances come from cards that
// are already in use where that works.
std::variant<GpuChoice, PlacementReason> choose_gpus(const ResourceSpec& spec,
                                                     const HostInfo& host);

// What is free on the host, whatever it is.
FreeDevices count_free(const HostInfo& host);

// Whether the host has, in use or not, any device that such a spec could get.
bool serves_gpus(const ResourceSpec& spec, const HostInfo& host);

// "2 gpus of kind "a100"", "1 1g.10gb mig instance".
std::string gpu_words(const ResourceSpec& spec);

}  // namespace fuse
