#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/log.h"
#include "base/metrics.h"
#include "orchestrator/activity.h"
#include "orchestrator/host_directory.h"
#include "orchestrator/silent_hosts.h"
#include "orchestrator/store.h"

namespace fuse {

struct ReconcilerOptions {
  std::chrono::hours retention{24 * 7};       // of ended environments
  std::chrono::seconds orphan_grace{5 * 60};  // before a VM without environment is destroyed
  std::chrono::seconds runtime_grace{60};     // past max_runtime, for the job's own limit
  std::chrono::seconds lost_after{15 * 60};   // of a host's silence
};

struct ReconcilerParts {
  Store& store;
  const HostDirectory& hosts;
  Activity& activity;
  Clock& clock;
  Log& log;
  Metrics& metrics;
};

// Compares what the database says with what the hosts' agents say, and acts on
// differences that last.  Nothing is decided on a list alone that was made
// before the database was read.  For one thread.
class Reconciler {
 public:
  Reconciler(const ReconcilerParts& parts, ReconcilerOptions options)
      : store_(parts.store),
        hosts_(parts.hosts),
        activity_(parts.activity),
        clock_(parts.clock),
        log_(parts.log),
        metrics_(parts.metrics),
        options_(options),
        silent_(parts.store, parts.clock, parts.log, options.lost_after) {}

  // One look at every host; what goes wrong with one is logged and does not keep
  // the others waiting.
  void pass();
  // Reads the verdicts of those that are not known to be healthy, which somebody
  // may wait for.
  void look_for_health();

 private:
  Result<void> check_host(const std::string& id);
  Result<void> check_environments(const std::string& id, HostAgent agent);
  Result<void> check_running(const EnvironmentRow& row, HostAgent agent,
                             const std::map<std::string, VmInfo>& listed);
  Result<void> check_limits(const EnvironmentRow& row);
  Result<void> check_health(const EnvironmentRow& row, HostAgent agent);
  Result<void> check_orphans(HostAgent agent, const std::map<std::string, VmInfo>& listed);
  void destroy_leftover(HostAgent agent, const VmInfo& vm);
  // Takes a running environment down as failed, unless it has changed since.
  Result<void> fail(const EnvironmentRow& row, Error why);
  // True at the second look in a row at which an environment is suspected of
  // `what`: stuck_tasks or idle_vms.
  bool seen_twice(std::string_view what, const std::string& uid);
  void count(std::string_view what) const;

  Store& store_;
  const HostDirectory& hosts_;
  Activity& activity_;
  Clock& clock_;
  Log& log_;
  Metrics& metrics_;
  ReconcilerOptions options_;
  SilentHosts silent_;
  std::map<std::string, SteadyTime> orphans_;  // by uid, since when
  std::set<std::string> suspicions_;           // of the pass before
  std::set<std::string> raised_;               // of this one
  // Counted in this pass.
  struct Seen {
    int vms = 0;  // that the hosts reported
    int health_checked = 0;
    int health_failing = 0;
  };
  Seen seen_{};
};

// The health verdict in the text of /fuse/health.json; nothing when it is none.
std::optional<Health> health_in(const std::string& text);

}  // namespace fuse
