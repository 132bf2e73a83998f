#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hostmode/mig/profile.h"

namespace fuse {

// A kind of virtual GPU that a function offers.
struct VgpuType {
  std::string id{};    // "nvidia-474" of an mdev host, "1414" of a vendor-VFIO host
  std::string name{};  // "NVIDIA H200X-1-18C"
};

// The lines "ID : NAME" of `creatable_vgpu_types`, with or without a header.
std::vector<VgpuType> parse_creatable_types(std::string_view text);

// The type that takes an instance of that profile; for compute (C) where several
// do, as they differ in graphics alone.
std::optional<VgpuType> type_for(const std::vector<VgpuType>& types, const MigProfile& profile);

}  // namespace fuse
