#pragma once

#include "cmd/context.h"

namespace fuse::cmd {

// Ends every environment of local mode, stops the background process and removes its
// state, all but the guest images.  An environment that cannot be ended keeps all of it.
int purge_local(Context& context);

}  // namespace fuse::cmd
