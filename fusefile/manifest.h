#pragma once

#include <string>

#include "fusefile/fusefile.h"

namespace fuse {

// The manifest of a Fusefile, as compact JSON: workspace, environment and
// services, for the guest.
std::string manifest_of(const Fusefile& file);

}  // namespace fuse
