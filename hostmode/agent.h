#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "hostmode/agent_config.h"
#include "hostmode/vm_keeper.h"
#include "orchestrator/api/host_agent.h"

namespace fuse {

// A host's agent in this process: virtual machines by QEMU, their guests and
// jobs.  What it knows is on disk: dropping it leaves the VMs running, and the
// next one on the same state directory takes them up.
class Agent final : public VmAgent, public GuestAgent, public JobAgent {
 public:
  // Takes the state directory (conflict when another process has it) and takes up
  // what is there.
  static Result<std::unique_ptr<Agent>> start(AgentWorld world, AgentConfig config);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  ~Agent() override;

  [[nodiscard]] HostAgent interfaces() { return {*this, *this, *this}; }

  Result<HostCapacity> capacity() override;
  Result<VmInfo> create_vm(const CreateVmRequest& request) override;
  Result<VmInfo> get_vm(const std::string& vm_id) override;
  Result<std::vector<VmInfo>> list_vms(const std::string& prefix) override;
  Result<void> destroy_vm(const std::string& vm_id) override;

  Result<void> upload(const std::string& vm_id, const UploadFile& file) override;
  Result<ExecResult> exec(const std::string& vm_id, const ExecRequest& request) override;
  Result<std::unique_ptr<AttachSession>> attach(const std::string& vm_id,
                                                const AttachRequest& request) override;
  Result<std::vector<Endpoint>> start_agent(const std::string& vm_id,
                                            const StartAgentRequest& request) override;

  Result<void> start_job(const std::string& vm_id, const JobSpec& job) override;
  Result<JobStatus> job(const std::string& vm_id) override;
  Result<void> stop_job(const std::string& vm_id) override;
  Result<LogRange> logs(const std::string& vm_id, const LogQuery& query, const ByteSink& sink,
                        std::stop_token stop) override;

  // VMs' folders that were set aside, and why.
  [[nodiscard]] std::vector<QuarantinedVm> quarantined() const { return keeper_.quarantined(); }
  // Files of the image store that VMs are started from.
  [[nodiscard]] std::set<fs::path> images_in_use() const;
  // Looks after the VMs at once: ends those whose folders were removed.
  void look_after_vms() { keeper_.look_after_all(); }
  // UUIDs of the devices that VMs have.
  [[nodiscard]] std::set<std::string> devices_in_use() const;
  // How many VMs are alive.
  [[nodiscard]] std::size_t alive() const;

 private:
  Agent(AgentWorld world, AgentConfig config) : keeper_(std::move(world), std::move(config)) {}
  Result<std::shared_ptr<VmSession>> session(const std::string& vm_id);
  void keep_house(std::stop_token stop);

  // agent_ports.cpp
  VmInfo with_address(VmInfo vm);
  Result<void> publish(const VmInfo& vm);
  std::vector<Endpoint> endpoints(const std::string& uid);  // those in place
  std::optional<Endpoint> own_endpoint(const std::string& uid);
  Result<void> note_endpoints(const std::string& uid, const std::vector<Endpoint>& in_place);

  VmKeeper keeper_;
  std::mutex mutex_;
  std::condition_variable_any woken_;
  std::jthread housekeeper_;  // last: it uses all of the above
};

}  // namespace fuse
