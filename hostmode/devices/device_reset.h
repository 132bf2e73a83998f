#pragma once

#include <functional>
#include <string>
#include <vector>

#include "base/host.h"
#include "base/result.h"
#include "hostmode/devices/driver_moves.h"

namespace fuse {

// Resets everything on the bus of a function through VFIO: for functions that have no
// reset of their own, such as a card's sound chip.  All of it must be in `group`.
using HotReset = std::function<Result<void>(const std::string& group, const std::string& address)>;

struct ResetTools {
  KernelWrites writes{};
  HotReset hot_reset{};
};

// A function that is to be reset, with its IOMMU group.
struct ResetTarget {
  std::string address{};
  std::string group{};
};

// How that went for one function.
struct ResetOutcome {
  std::string address{};
  std::string method{};   // flr, bus, ... as the kernel calls it, or "hot"; empty: not reset
  std::string problem{};  // why it cannot be trusted; empty: it answers, and is reset if it can be
};

// Resets functions that nobody has open: each by the first method of its own that works,
// those without one together with their bus.  Then each must answer with the vendor
// that it has.  A method that the kernel lists and that does not work is a problem;
// none at all is not.
std::vector<ResetOutcome> reset_functions(Host& host, const std::vector<ResetTarget>& targets,
                                          const ResetTools& tools);

}  // namespace fuse
