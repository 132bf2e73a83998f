#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "net/http.h"
#include "orchestrator/api/environment_api.h"
#include "orchestrator/api/host_agent.h"
#include "orchestrator/api/host_api.h"
#include "orchestrator/callers.h"
#include "orchestrator/host_directory.h"
#include "orchestrator/scheduler.h"

namespace fuse {

struct OrchestratorConfig {
  fs::path database{};                    // SQLite file, made 0600; empty: in memory
  std::string database_url{};             // PostgreSQL, for several processes; instead of it
  std::int32_t connections = 16;          // at most, to PostgreSQL
  std::string key{};                      // 32 bytes that seal secrets in the database
  std::string prefix = "fuse-";           // of environment ids and VM names
  std::int32_t workers = 8;               // how many operations are worked on at a time
  std::chrono::seconds create_wait{50};   // then a create answers `provisioning`
  std::chrono::seconds most_startup{55};  // ceiling of a startup script
  std::chrono::hours retention{24 * 7};   // of ended environments
  PlacementPolicy policy = PlacementPolicy::spread;
  bool guest_credentials = false;  // guests get a certificate and a token
  CallerRules callers{};           // without a master token everybody is trusted
  ConnectAgent connect{};          // to hosts elsewhere; none: there are none
};

// A host whose agent lives in this process.
struct LocalHost {
  std::string id = "local";
  std::string region{};
  std::map<std::string, std::string> labels{};
  std::int32_t most_vms = 64;
};

// The engine: store, services, workers and reconciler.  Everything that was
// answered is in the database, so whatever was under way when a process ended
// goes on in the next one that opens the same file.
class Orchestrator {
 public:
  // Opens or makes the database and brings its schema up to date (a copy of the
  // old file is kept beside it).  conflict when a newer program has written it.
  // `clock` and `log` must outlive the result.
  static Result<std::unique_ptr<Orchestrator>> open(OrchestratorConfig config, Clock& clock,
                                                    Log& log);
  ~Orchestrator();  // stops it
  Orchestrator(const Orchestrator&) = delete;
  Orchestrator& operator=(const Orchestrator&) = delete;

  // Asks the agent for its capacity and enters the host, or brings its row up to
  // date: a cordon and what is bound on it stay.  The agent must outlive stop().  It
  // is ours alone: VMs that another database has left there are destroyed.
  Result<void> attach_local_host(const LocalHost& host, HostAgent agent);

  // Starts the threads that work on operations and reconcile.  Before it,
  // requests are taken and wait.
  void start();
  // Looks after what is watched at once, not when its next look is due: a local
  // host's agent has news.
  void look_now();
  // Lets every step in hand finish, then joins the threads.  Environments go on.
  void stop();

  [[nodiscard]] EnvironmentApi& environments();
  [[nodiscard]] HostApi& hosts();
  // Answers the HTTP API, for net's server.  Valid while this lives.
  [[nodiscard]] HttpHandler handler();
  // The id that this database's VMs carry, so that no other orchestrator takes
  // them for orphans.
  [[nodiscard]] const std::string& cluster() const;

 private:
  struct Parts;
  explicit Orchestrator(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace fuse
