#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "orchestrator/api/environment_api.h"
#include "orchestrator/api/streams.h"
#include "orchestrator/api/types.h"

namespace fuse {

struct CreateVmRequest {
  std::string name{};  // becomes the vm_id, see wire: lowercased, [a-z0-9-]
  std::string uid{};   // ours: a ULID that keys its folder; empty: the agent makes one
  std::int32_t cpus = 0;
  std::int32_t memory_mb = 0;
  std::int32_t storage_gb = 0;
  std::string region{};
  std::string image{};
  std::int32_t gpus = 0;
  std::string gpu_kind{};
  std::string gpu_profile{};
  std::vector<std::string> mig_instance_uuids{};
  std::vector<std::string> gpu_device_uuids{};  // ours
  std::string idempotency_key{};  // ours: a retry with the same key answers the same VM
  std::string cluster{};          // ours: whose VM it is
};

struct VmInfo {
  std::string vm_id{};
  std::string uid{};      // ours
  std::string url{};      // authority, no scheme; may be empty
  std::string cluster{};  // ours
  // ours: false once its QEMU is gone; `ended` says why in words.
  bool alive = true;
  std::string ended{};
};

struct UploadFile {
  std::string path{};  // absolute in the guest
  std::string bytes{};
  std::uint32_t mode = 0;  // 0: the agent's default (0600 under /fuse)
};

// What starts with the guest agent once everything is delivered.
struct StartAgentRequest {
  std::vector<ExposeSpec> expose{};
};

struct JobSpec {
  std::vector<BuildStep> steps{};
  std::string script{};                      // empty: the steps are all there is
  std::map<std::string, std::string> env{};  // secrets among it: never stored or logged
  std::string workdir{};
  std::int64_t timeout_seconds = 0;  // 0: none
  std::int64_t grace_seconds = 0;    // 0: 30 s
};

// Inventory and virtual machines.
class VmAgent {
 public:
  virtual ~VmAgent() = default;
  virtual Result<HostCapacity> capacity() = 0;
  // Returns when the guest's agent has said hello.  conflict when it exists or
  // devices are short, invalid_argument for a bad image name, not_found for an
  // image that is not on the host.
  virtual Result<VmInfo> create_vm(const CreateVmRequest& request) = 0;
  virtual Result<VmInfo> get_vm(const std::string& vm_id) = 0;
  virtual Result<std::vector<VmInfo>> list_vms(const std::string& prefix) = 0;
  // Ends it, fetching the job's result and the rest of its log first where the
  // guest still answers.  Idempotent but for not_found.
  virtual Result<void> destroy_vm(const std::string& vm_id) = 0;
};

// What is done inside a guest.
class GuestAgent {
 public:
  virtual ~GuestAgent() = default;
  virtual Result<void> upload(const std::string& vm_id, const UploadFile& file) = 0;
  // exit_code 124, empty out and an err beginning "timeout:" when time ran out.
  virtual Result<ExecResult> exec(const std::string& vm_id, const ExecRequest& request) = 0;
  virtual Result<std::unique_ptr<AttachSession>> attach(const std::string& vm_id,
                                                        const AttachRequest& request) = 0;
  virtual Result<std::vector<Endpoint>> start_agent(const std::string& vm_id,
                                                    const StartAgentRequest& request) = 0;
};

// Durable jobs: one a VM.
class JobAgent {
 public:
  virtual ~JobAgent() = default;
  // conflict when the VM has had a job.
  virtual Result<void> start_job(const std::string& vm_id, const JobSpec& job) = 0;
  // not_found when it never had one.  Also answers, by uid, after destroy.
  virtual Result<JobStatus> job(const std::string& vm_id) = 0;
  virtual Result<void> stop_job(const std::string& vm_id) = 0;
  virtual Result<LogRange> logs(const std::string& vm_id, const LogQuery& query,
                                const ByteSink& sink, std::stop_token stop) = 0;
};

// A host as an orchestrator sees it, in process or over HTTP.  `vm_id` may also
// be a uid.  Safe from several threads; calls on different VMs do not wait for
// each other.
struct HostAgent {
  VmAgent& vms;
  GuestAgent& guests;
  JobAgent& jobs;
  std::shared_ptr<void> owner{};  // keeps them, where nobody else does
};

}  // namespace fuse
