#pragma once

#include <chrono>
#include <stop_token>
#include <string>

#include "base/clock.h"
#include "base/metrics.h"
#include "orchestrator/activity.h"
#include "orchestrator/api/environment_api.h"
#include "orchestrator/fleet_view.h"
#include "orchestrator/host_directory.h"
#include "orchestrator/store.h"

namespace fuse {

struct EnvironmentServiceOptions {
  std::string prefix = "fuse-";
  std::chrono::seconds create_wait{50};     // for a create's or a destroy's outcome
  std::chrono::seconds most_startup{55};    // that a request may ask for
  std::chrono::seconds up_within{15 * 60};  // what is not running by then has failed
  PlacementPolicy policy = PlacementPolicy::spread;
  Metrics* metrics = nullptr;      // where placements are timed
  bool guest_credentials = false;  // whether guests get a certificate and a token
};

// Environments over the database.  A call checks and notes what is wanted in one
// transaction, which workers carry out; calls that answer with an outcome wait
// for it.
class EnvironmentService final : public EnvironmentApi {
 public:
  EnvironmentService(Store& store, const HostDirectory& hosts, Activity& activity, Clock& clock,
                     EnvironmentServiceOptions options);

  Result<Environment> create(const CreateEnvironmentRequest& request,
                             const CreateOptions& options) override;
  Result<EnvironmentPage> list(const EnvironmentFilter& filter) override;
  Result<Environment> get(const std::string& id, bool include_ended) override;
  Result<void> destroy(const std::string& id) override;
  Result<ExecResult> exec(const std::string& id, const ExecRequest& request) override;
  Result<std::unique_ptr<AttachSession>> attach(const std::string& id,
                                                const AttachRequest& request) override;
  Result<void> stop_job(const std::string& id) override;
  Result<Environment> drain(const std::string& id) override;
  Result<void> rotate_token(const std::string& id) override;
  Result<void> events(const std::string& id, const EventQuery& query, const EventSink& sink,
                      std::stop_token stop) override;
  Result<LogRange> logs(const std::string& id, const LogQuery& query, const ByteSink& sink,
                        std::stop_token stop) override;

  // The fleet as placements see it.
  [[nodiscard]] FleetView& fleet() { return fleet_; }

  // Ends every wait and stream, and those to come.
  void stop() { stopping_.request_stop(); }

 private:
  Result<Environment> create_checked(const CreateEnvironmentRequest& request,
                                     const CreateOptions& options);
  Result<EnvironmentRow> place_and_insert(const CreateEnvironmentRequest& request);
  Result<EnvironmentRow> try_to_place(const CreateEnvironmentRequest& request,
                                      FleetView::Look look);
  Result<Decision> decide(const ResourceSpec& spec, FleetView::Look look);
  Result<EnvironmentRow> new_row(const CreateEnvironmentRequest& request,
                                 const Placement& placement) const;
  Result<void> insert(StoreTx& tx, const EnvironmentRow& row,
                      const CreateEnvironmentRequest& request, const Placement& placement) const;
  Result<void> refuse_duplicate(const std::string& task_id);
  Result<Environment> await_created(EnvironmentRow row);
  Result<void> await_gone(const EnvironmentRow& row);

  Result<std::optional<EnvironmentRow>> by_uid(const std::string& uid);
  Result<EnvironmentRow> find(const std::string& id, bool include_ended);
  // The live environment and the agent of its host, when it is up; or running.
  struct Running {
    EnvironmentRow row{};
    HostAgent agent;
  };
  Result<Running> find_up(const std::string& id);
  Result<Running> find_running(const std::string& id);
  Result<HostAgent> agent_of(const EnvironmentRow& row) const;
  // Where a stream of events begins: after that event, or with the current state.
  struct StreamStart {
    EnvironmentRow row{};
    std::int64_t sequence = 0;
  };
  Result<StreamStart> begin_stream(const std::string& id, const EventQuery& query);
  Result<EnvironmentRow> await_job(EnvironmentRow row, const std::stop_token& stop);

  Store& store_;
  const HostDirectory& hosts_;
  Activity& activity_;
  Clock& clock_;
  EnvironmentServiceOptions options_;
  FleetView fleet_;
  std::stop_source stopping_;
};

// What an agent says about a VM that we know, as an answer of ours.
Error of_agent(std::string_view what, Error error);
// That an environment is in no state for what was asked.
Error not_running(const Environment& environment);

}  // namespace fuse
