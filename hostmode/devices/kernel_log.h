#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "base/result.h"

namespace fuse {

// A fault of a GPU as the NVIDIA driver reports it:
//   [ 1234.5] NVRM: Xid (PCI:0000:9b:00): 119, pid=2024380, name=python, ...
struct XidEvent {
  std::string slot{};  // 0000:9b:00; the message names no function
  int xid = 0;
  std::optional<double> at{};  // seconds since boot, where the line says so
  std::string words{};         // what the message goes on with
};

std::vector<XidEvent> parse_xids(std::string_view log);

// The kernel's log by dmesg(1).
Result<std::string> read_kernel_log(Host& host);

}  // namespace fuse
