#pragma once

#include <string>

#include "base/result.h"

namespace fuse {

// Resets the bus, or the slot, of a function on vfio-pci by VFIO's hot reset, which takes
// along whatever else is on it.  An error when something on it is not in `group`, or
// the group is in use.
Result<void> vfio_hot_reset(const std::string& group, const std::string& address);

}  // namespace fuse
