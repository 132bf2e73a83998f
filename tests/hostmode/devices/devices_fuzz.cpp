#include <cstddef>
#include <cstdint>
#include <string_view>

#include "hostmode/devices/inventory_files.h"
#include "hostmode/devices/kernel_log.h"
#include "hostmode/devices/pci_device.h"
#include "hostmode/devices/smi_csv.h"
#include "hostmode/mig/mig_files.h"
#include "hostmode/mig/profile.h"
#include "hostmode/mig/smi_mig.h"
#include "hostmode/mig/vgpu_types.h"

namespace {

// What is read is written the same way, and read again as the same.
template <class Parse>
void there_and_back(std::string_view text, const Parse& parse) {
  const auto value = parse(text, "f");
  if (!value) return;
  const auto again = parse(fuse::to_text(*value), "f");
  if (!again || fuse::to_text(*again) != fuse::to_text(*value)) __builtin_trap();
}

}  // namespace

// Inventories of operators and what nvidia-smi and the kernel print: whatever it is,
// it is read or refused.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  there_and_back(text, fuse::parse_vfio_inventory);
  there_and_back(text, fuse::parse_mig_inventory);
  there_and_back(text, fuse::parse_kept_facts);
  there_and_back(text, fuse::parse_layout);
  there_and_back(text, fuse::parse_journal);
  (void)fuse::parse_slot_lines(text, "f");
  (void)fuse::smi_gpus(fuse::parse_smi_csv(text));
  (void)fuse::parse_xids(text);
  (void)fuse::parse_pci_resource(text);
  (void)fuse::parse_gi_profiles(text);
  (void)fuse::parse_gi_placements(text);
  (void)fuse::parse_gpu_instances(text);
  (void)fuse::parse_compute_instances(text);
  (void)fuse::parse_creation(text);
  (void)fuse::parse_listing(text);
  (void)fuse::parse_mig_query(text);
  for (const fuse::VgpuType& type : fuse::parse_creatable_types(text)) {
    (void)fuse::profile_of_vgpu(type.name);
  }
  (void)fuse::parse_profile(text);
  return 0;
}
