#pragma once

#include "base/error.h"
#include "cmd/context.h"
#include "cmd/exit_codes.h"

namespace fuse::cmd {

// Tells what is wrong with a command's line or its input; the exit code for that.
ExitCode misuse(const Context& context, const Error& error);

}  // namespace fuse::cmd
