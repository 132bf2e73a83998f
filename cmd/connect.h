#pragma once

#include <memory>

#include "cmd/context.h"
#include "cmd/local_client.h"

namespace fuse::cmd {

// A client of this user's background process, as the environment describes it.
Result<std::shared_ptr<LocalClient>> local_client(Context& context);

// The orchestrator elsewhere that the user means; else this machine's own, started
// when it does not run, and started again when it ends under a stream.
Result<std::unique_ptr<EnvironmentApi>> connect(Context& context);
// The same, for calls that are made once.
Result<std::unique_ptr<HttpClient>> dial(Context& context);

}  // namespace fuse::cmd
