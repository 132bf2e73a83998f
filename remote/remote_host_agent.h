#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <semaphore>
#include <stop_token>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/host.h"
#include "net/http_client.h"
#include "orchestrator/api/host_agent.h"
#include "remote/agent_wire.h"
#include "remote/exec_jobs.h"
#include "remote/log_reader.h"

namespace fuse {

struct RemoteHostOptions {
  // Creates wait for the guest's hello, and GPUs make boots long.
  std::chrono::milliseconds create_timeout{std::chrono::minutes(10)};
  // How long a log that broke is taken up again without an answer.
  std::chrono::milliseconds log_patience{std::chrono::seconds(20)};
  // In guests whose agent has no job routes: where their jobs are kept.
  std::string job_folder = "/fuse/job";
};

// What is done inside the guests of a host over HTTP.
class RemoteGuests final : public GuestAgent {
 public:
  explicit RemoteGuests(AgentWire& wire) : wire_(wire) {}

  Result<void> upload(const std::string& vm_id, const UploadFile& file) override;
  Result<ExecResult> exec(const std::string& vm_id, const ExecRequest& request) override;
  Result<std::unique_ptr<AttachSession>> attach(const std::string& vm_id,
                                                const AttachRequest& request) override;
  Result<std::vector<Endpoint>> start_agent(const std::string& vm_id,
                                            const StartAgentRequest& request) override;

 private:
  static constexpr std::ptrdiff_t uploads_at_a_time = 8;

  AgentWire& wire_;
  std::counting_semaphore<uploads_at_a_time> uploads_{uploads_at_a_time};
};

// Durable jobs on a host over HTTP: by its job routes, or, on an agent without
// them, by commands in the guest.
class RemoteJobs final : public JobAgent {
 public:
  RemoteJobs(AgentWire& wire, GuestAgent& guests, Clock& clock, const RemoteHostOptions& options)
      : wire_(wire),
        clock_(clock),
        options_(options),
        exec_jobs_(guests, clock, options.job_folder) {}

  Result<void> start_job(const std::string& vm_id, const JobSpec& job) override;
  Result<JobStatus> job(const std::string& vm_id) override;
  Result<void> stop_job(const std::string& vm_id) override;
  Result<LogRange> logs(const std::string& vm_id, const LogQuery& query, const ByteSink& sink,
                        std::stop_token stop) override;

  // Before a VM is destroyed on an agent that keeps no results: keeps its job's.
  void keep_result(const std::string& vm_id);

 private:
  // What one connection's part of a log came to.
  struct LogPart {
    bool last = false;
    std::optional<Error> refusal{};
  };
  // `over`: the job was, before this part is asked for; brought up to date.
  LogPart read_part(const std::string& vm_id, LogReader& reader, bool& over,
                    const std::stop_token& stop);

  AgentWire& wire_;
  Clock& clock_;
  RemoteHostOptions options_;
  ExecJobs exec_jobs_;
};

// Inventory and virtual machines of a host over HTTP.
class RemoteVms final : public VmAgent {
 public:
  RemoteVms(AgentWire& wire, RemoteJobs& jobs, const RemoteHostOptions& options)
      : wire_(wire), jobs_(jobs), options_(options) {}

  Result<HostCapacity> capacity() override;
  Result<VmInfo> create_vm(const CreateVmRequest& request) override;
  Result<VmInfo> get_vm(const std::string& vm_id) override;
  Result<std::vector<VmInfo>> list_vms(const std::string& prefix) override;
  Result<void> destroy_vm(const std::string& vm_id) override;

 private:
  AgentWire& wire_;
  RemoteJobs& jobs_;
  RemoteHostOptions options_;
};

// A host's agent over HTTP: our own, and others that speak the same wire.  Towards
// an agent without features the names of VMs end in their uid, the modes of files are
// set by chmod, and jobs are started by exec.  The kind of a GPU is sent as given.
class RemoteHostAgent {
 public:
  RemoteHostAgent(std::unique_ptr<HttpClient> http, Clock& clock,
                  const RemoteHostOptions& options = {});

  [[nodiscard]] HostAgent interfaces() { return {vms_, guests_, jobs_}; }
  // Asks the agent what it is; unauthorized when it rejects the token, unreachable
  // when it does not answer.
  Result<AgentHealth> health() { return wire_.ask_health(); }
  [[nodiscard]] std::string place() const { return wire_.place(); }

 private:
  AgentWire wire_;
  RemoteGuests guests_;
  RemoteJobs jobs_;
  RemoteVms vms_;
};

struct HostAddress {
  std::string url{};  // http or https, a path prefix is allowed; no user info
  std::string token{};
  fs::path ca_file{};  // empty: the system's
  bool verify_tls = true;
};

// invalid_argument for an address that is none.
Result<std::unique_ptr<RemoteHostAgent>> connect_host_agent(const HostAddress& address,
                                                            Clock& clock,
                                                            const RemoteHostOptions& options = {});

}  // namespace fuse
