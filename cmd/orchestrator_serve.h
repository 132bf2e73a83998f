#pragma once

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "cmd/orchestrator_settings.h"
#include "cmd/signals.h"

namespace fuse::cmd {

struct OrchestratorServeParts {
  Host& host;
  Clock& clock;
  Log& log;
  WatchSignals watch_signals{};
};

// The orchestrator behind its HTTP API.  Goes on with what was under way, and
// returns once it was told to stop by SIGTERM or SIGINT, when the calls in hand are
// done; environments go on.  conflict when another process has the database.
Result<void> serve_orchestrator(const OrchestratorSettings& settings,
                                const OrchestratorServeParts& parts);

}  // namespace fuse::cmd
