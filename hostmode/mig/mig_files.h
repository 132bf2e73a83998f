#pragma once

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "base/result.h"
#include "hostmode/devices/device_files.h"

namespace fuse {

// An instance that is to be there after every boot:
//   GPU_UUID PROFILE START DEVICE_UUID
// By the card's UUID, since its number and its address may change.
struct LayoutEntry {
  std::string gpu{};
  std::string profile{};
  int start = 0;
  std::string device{};  // what VMs call it, for as long as the layout stands

  bool operator==(const LayoutEntry&) const = default;
};
Result<std::vector<LayoutEntry>> parse_layout(std::string_view text, std::string_view file);
std::string to_text(const std::vector<LayoutEntry>& layout);

// What has to be undone when a change is found half made.
struct MigJournal {
  std::set<std::string> switched{};             // cards whose MIG mode was off
  std::map<std::string, std::set<int>> had{};   // instances of each card that is changed
  std::set<std::string> devices{};              // paths of devices that were to be made
  std::map<std::string, std::set<int>> drop{};  // instances that were to be destroyed

  bool operator==(const MigJournal&) const = default;
};
Result<MigJournal> parse_journal(std::string_view text, std::string_view file);
std::string to_text(const MigJournal& journal);

Result<std::vector<LayoutEntry>> read_layout(Host& host, const DevicePaths& paths);
Result<void> write_layout(Host& host, const DevicePaths& paths,
                          const std::vector<LayoutEntry>& layout);

}  // namespace fuse
