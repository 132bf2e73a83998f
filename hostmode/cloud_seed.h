#pragma once

#include <string>

#include "hostmode/vm_record.h"

namespace fuse {

// What a guest's cloud-init is told: an instance that it has not seen before, and its
// name.
std::string cloud_meta_data(const VmRecord& vm);

// The disk that brings the agent into a guest which boots by firmware: what cloud-init
// reads (NoCloud), the service it sets up, and `program`, this executable's bytes.
// The same of every VM but for the name and uid.
std::string cloud_seed_disk(const VmRecord& vm, std::string_view program);

}  // namespace fuse
