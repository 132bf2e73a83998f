#include "hostmode/mig/vgpu_types.h"

#include <algorithm>

#include "base/text.h"

namespace fuse {

std::vector<VgpuType> parse_creatable_types(std::string_view text) {
  std::vector<VgpuType> types;
  for (const std::string& line : split(text, '\n')) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;
    const std::string_view id = trim(std::string_view(line).substr(0, colon));
    const std::string_view name = trim(std::string_view(line).substr(colon + 1));
    const auto number = parse_int(id);
    if (number && *number > 0 && !name.empty())
      types.push_back({std::string(id), std::string(name)});
  }
  return types;
}

std::optional<VgpuType> type_for(const std::vector<VgpuType>& types, const MigProfile& profile) {
  std::vector<VgpuType> fitting;
  for (const VgpuType& type : types) {
    const auto of_type = profile_of_vgpu(type.name);
    if (of_type && vgpu_takes(*of_type, profile)) fitting.push_back(type);
  }
  const auto for_compute = std::ranges::find_if(fitting, [](const VgpuType& type) {
    const std::string series = type.name.substr(type.name.find_last_of('-') + 1);
    return series.find('C') != std::string::npos;
  });
  if (for_compute != fitting.end()) return *for_compute;
  if (fitting.empty()) return std::nullopt;
  return fitting.front();
}

}  // namespace fuse
