#pragma once

#include <optional>
#include <string>

#include "cmd/context.h"

namespace fuse::cmd {

// Asks on the terminal whether to remove `what`; without one, only --yes will do.
// The exit code when it is not agreed to.
std::optional<int> not_agreed(const Context& context, const std::string& what);

}  // namespace fuse::cmd
