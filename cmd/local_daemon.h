#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <set>
#include <string>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "cmd/local_paths.h"
#include "cmd/signals.h"
#include "orchestrator/api/host_agent.h"

namespace fuse::cmd {

// This machine's agent, with all that it stands on.
class LocalAgent {
 public:
  virtual ~LocalAgent() = default;
  [[nodiscard]] virtual HostAgent agent() = 0;
  // Files of guest images that VMs are started from.
  [[nodiscard]] virtual std::set<fs::path> images_in_use() const = 0;
  // Ends VMs whose folders were removed.
  virtual void look_after_vms() = 0;
};
// `on_end` is for AgentWorld::on_end.
using MakeLocalAgent =
    std::function<Result<std::unique_ptr<LocalAgent>>(std::function<void()> on_end)>;

struct LocalDaemonOptions {
  LocalPaths paths{};
  std::chrono::milliseconds idle_limit{std::chrono::minutes(30)};
  // How often it looks whether there is a reason to end.
  std::chrono::milliseconds idle_check{std::chrono::seconds(2)};
  // For the calls in hand when it is asked to stop.
  std::chrono::milliseconds stop_grace{std::chrono::seconds(2)};
};

struct LocalDaemonParts {
  Host& host;
  Clock& clock;
  Log& log;
  WatchSignals watch_signals{};
  MakeLocalAgent make_agent{};
};

// Local mode's background process: orchestrator and agent behind a unix socket
// that only this user can use.  Returns once it was told to stop (SIGTERM,
// SIGINT or POST /v1/local/shutdown), nothing was alive and nobody asked for
// anything for `idle_limit`, or the state folder was removed; VMs go on.  Returns
// success at once when another process has the state folder.
Result<void> serve_local(const LocalDaemonOptions& options, const LocalDaemonParts& parts);

}  // namespace fuse::cmd
