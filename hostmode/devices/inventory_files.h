#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "base/result.h"

namespace fuse {

// The files that say what this host may hand over.  Blank lines and lines that
// begin with # are skipped; a line that is not as described is an error that
// names file and line.

// What is known about a GPU that nvidia-smi no longer sees.  Keys of other
// programs are skipped.
struct GpuFacts {
  std::string bus_id{};  // as nvidia-smi or sysfs writes it
  std::string uuid{};
  std::string model{};
  std::int64_t memory_mb = 0;  // 0: not known, or no number
  std::string driver_version{};
  std::string compute_cap{};
  std::string mig_mode{};

  [[nodiscard]] bool empty() const { return uuid.empty() && model.empty(); }
  bool operator==(const GpuFacts&) const = default;
};

// A complete IOMMU group, ready to be handed over:
//   COUNT KIND SLOT [SLOT...] [| key=val;key=val]...
struct InventoryGroup {
  std::size_t count = 0;             // GPUs in it
  std::string kind{};                // lower case
  std::vector<std::string> slots{};  // every function that is attached
  std::vector<GpuFacts> gpus{};      // at most `count`; often fewer are known

  bool operator==(const InventoryGroup&) const = default;
};

// A MIG instance that can be handed over:
//   PROFILE KIND UUID [PARENT_GPU_UUID] [| key=val;key=val]
struct InventoryInstance {
  std::string profile{};  // lower case
  std::string kind{};     // lower case
  std::string uuid{};
  std::string parent{};  // empty: not told
  std::string path{};    // of the device in sysfs; empty: the mdev of that uuid
  std::string mig{};     // the instance's own UUID, where `uuid` is that of a device

  bool operator==(const InventoryInstance&) const = default;
};

Result<std::vector<InventoryGroup>> parse_vfio_inventory(std::string_view text,
                                                         std::string_view file);
std::string to_text(const std::vector<InventoryGroup>& groups);

Result<std::vector<InventoryInstance>> parse_mig_inventory(std::string_view text,
                                                           std::string_view file);
std::string to_text(const std::vector<InventoryInstance>& instances);

// What each function was before it was bound: its driver, and for a GPU its
// facts.  One function a line, "SLOT | driver=nvidia;uuid=...".  Kept when a card
// is bound a second time, when nobody could tell any more.
struct KeptFacts {
  std::string driver{};
  GpuFacts gpu{};

  bool operator==(const KeptFacts&) const = default;
};
Result<std::map<std::string, KeptFacts>> parse_kept_facts(std::string_view text,
                                                          std::string_view file);
std::string to_text(const std::map<std::string, KeptFacts>& facts);

// Lines "SLOT WORDS...": roles and quarantine.  The slot as in sysfs.
Result<std::map<std::string, std::string>> parse_slot_lines(std::string_view text,
                                                            std::string_view file);
std::string slot_lines_text(const std::map<std::string, std::string>& lines);

// The file's text, "" when there is none.
Result<std::string> read_if_there(Host& host, const fs::path& file);

}  // namespace fuse
