#pragma once

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "orchestrator/api/host_agent.h"

namespace fuse {

// A host with VMs that exist only in memory, and a ledger of its own: what must
// never happen is in `violations`.  Safe from several threads.
class FakeHostAgent final : public VmAgent, public GuestAgent, public JobAgent {
 public:
  struct Vm {
    CreateVmRequest request{};
    bool alive = true;
    std::string ended{};
    std::map<std::string, UploadFile> files{};
    std::optional<StartAgentRequest> started{};
    std::vector<ExecRequest> execs{};
    std::optional<JobSpec> job{};
    JobStatus status{};
    std::string log{};
  };

  FakeHostAgent();

  HostAgent agent() { return {*this, *this, *this}; }

  // Called before and after each call takes effect, with the call's name; an
  // error that it returns is the call's answer.  Not under the lock.
  using Interference = std::function<std::optional<Error>(const std::string& call)>;
  Interference before{};
  Interference after{};
  // What an exec answers; default: exit code 0 and the command on stdout.
  std::function<ExecResult(const ExecRequest&)> on_exec{};
  // What becomes of a job when it is started; default: it runs.
  std::function<JobStatus(const JobSpec&)> on_job{};

  void set_capacity(const HostCapacity& capacity);
  // A job goes on, ends, prints; a VM dies by itself.
  void set_job(const std::string& uid, const JobStatus& status);
  void print(const std::string& uid, const std::string& text);
  void kill_vm(const std::string& uid, const std::string& why);
  // A VM that nobody asked for.
  void plant(const CreateVmRequest& request);

  [[nodiscard]] std::map<std::string, Vm> vms() const;  // by uid
  [[nodiscard]] std::vector<std::string> violations() const;
  [[nodiscard]] std::vector<std::string> calls() const;
  // How many VMs were ever made.
  [[nodiscard]] int made() const;

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

 private:
  template <class T>
  Result<T> call(const std::string& name, const std::function<Result<T>()>& body);
  Vm* find(const std::string& vm_id);          // by mutex_
  VmInfo info_of(const Vm& vm) const;          // by mutex_
  void check_devices(const CreateVmRequest&);  // by mutex_

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  HostCapacity capacity_;
  std::map<std::string, Vm> vms_;
  std::map<std::string, Vm> gone_;  // jobs and logs outlive their VM
  std::map<std::string, std::string> keys_;
  std::vector<std::string> violations_;
  std::vector<std::string> calls_;
  int made_ = 0;
};

}  // namespace fuse
