#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/clock.h"
#include "orchestrator/api/host_agent.h"
#include "remote/exec_job_script.h"

namespace fuse {

// Jobs on a host whose agent cannot run them: detached processes in the guest,
// their output and code in files there, asked for again and again.  What it says
// of a job goes with its VM, but for what keep_result() was called for; its log
// goes in any case.
class ExecJobs final : public JobAgent {
 public:
  ExecJobs(GuestAgent& guests, Clock& clock, std::string folder = "/fuse/job")
      : guests_(guests), clock_(clock), script_(std::move(folder)) {}

  Result<void> start_job(const std::string& vm_id, const JobSpec& job) override;
  Result<JobStatus> job(const std::string& vm_id) override;
  Result<void> stop_job(const std::string& vm_id) override;
  Result<LogRange> logs(const std::string& vm_id, const LogQuery& query, const ByteSink& sink,
                        std::stop_token stop) override;

  // Remembers how the VM's job stands, for after the VM.
  void keep_result(const std::string& vm_id);

 private:
  Result<ExecResult> run(const std::string& vm_id, const std::string& script);
  Result<JobStatus> ask(const std::string& vm_id);
  // Hands over what is there from `range.end` on; false when the sink wants no more.
  enum class Copied { all, refused };
  Result<Copied> copy(const std::string& vm_id, LogRange& range, const ByteSink& sink);
  Result<std::uint64_t> begin_of(const std::string& vm_id, const LogQuery& query);

  GuestAgent& guests_;
  Clock& clock_;
  ExecJobScript script_;
  std::mutex mutex_;
  std::map<std::string, JobStatus> kept_{};
};

}  // namespace fuse
