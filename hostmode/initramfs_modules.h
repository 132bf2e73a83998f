#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fuse {

// A kernel module by the name that modules know each other by:
// "kernel/drivers/char/hw_random/virtio-rng.ko.xz" is "virtio_rng".
std::string module_name_of(std::string_view file);

// What a module (the bytes of its .ko) says it depends on, by name.
Result<std::vector<std::string>> module_dependencies(std::string_view ko);

// What a module depends on, when asked for its name.
using ModuleLookup = std::function<Result<std::vector<std::string>>(const std::string&)>;

// `wanted` and all that it needs, each after what it depends on, and otherwise
// in the order wanted.  Dependencies that go round in a circle are an error.
Result<std::vector<std::string>> module_load_order(std::span<const std::string> wanted,
                                                   const ModuleLookup& dependencies_of);

}  // namespace fuse
