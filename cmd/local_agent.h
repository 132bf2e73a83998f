#pragma once

#include <functional>
#include <memory>

#include "base/log.h"
#include "cmd/config.h"
#include "cmd/context.h"
#include "cmd/local_daemon.h"
#include "hostmode/image_store.h"

namespace fuse::cmd {

// Where this user's guest images are.
ImageStoreConfig image_store_config(const Config& config);

// The agent of this machine as a plain user has it: QEMU, user networking, no
// GPUs unless there are some.
Result<std::unique_ptr<LocalAgent>> make_local_agent(const Config& config, const LocalPaths& paths,
                                                     const Context& context, Log& log,
                                                     std::function<void()> on_end);

}  // namespace fuse::cmd
