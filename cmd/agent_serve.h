#pragma once

#include <chrono>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "cmd/agent_settings.h"
#include "cmd/signals.h"

namespace fuse::cmd {

struct AgentServeParts {
  Host& host;
  Clock& clock;
  Log& log;
  WatchSignals watch_signals{};
  Variables variables{};
  // For the calls in hand when it is asked to stop.
  std::chrono::milliseconds stop_grace{std::chrono::seconds(60)};
};

// This host's agent behind its HTTP API.  Takes up the VMs that run, and returns
// once it was told to stop by SIGTERM or SIGINT, when the calls in hand are done;
// VMs go on.  conflict, naming the process, when another agent has the state.
Result<void> serve_agent(const AgentSettings& settings, const AgentServeParts& parts);

}  // namespace fuse::cmd
