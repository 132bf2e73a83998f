#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/host.h"
#include "base/result.h"
#include "hostmode/job_log.h"
#include "orchestrator/api/types.h"

namespace fuse {

// What a VM's folder and its receipt say about its job: job.json is there from
// before the job is handed to the guest, job.log is its output.
Result<std::optional<JobStatus>> read_job(Host& host, const fs::path& dir);
Result<void> write_job(Host& host, const fs::path& dir, const JobStatus& status);

// A job that ended with its VM.
JobStatus lost_job(const JobStatus& last_known);
// Writes down that the job in `dir` is lost, if there is one that has not ended.
Result<void> lose_job(Host& host, const fs::path& dir);

// A live VM's job: its last known state, in memory and on disk, and its log.
// Safe from several threads.
class JobBook {
 public:
  // Takes up what is in `dir`.
  static Result<std::shared_ptr<JobBook>> open(Host& host, const fs::path& dir);

  // conflict when there was a job; else there is one, pending.
  Result<void> begin();
  // The guest never got it.
  Result<void> forget();
  // What the guest says now.  A final state stays.
  Result<void> update(const JobStatus& status);
  // The VM is gone: a job that has not ended by then is lost.  Known from here on
  // also when it cannot be written down.
  Result<void> close();

  [[nodiscard]] std::optional<JobStatus> status() const;
  [[nodiscard]] const std::shared_ptr<JobLog>& log() const { return log_; }

 private:
  JobBook(Host& host, fs::path dir, std::optional<JobStatus> status, std::shared_ptr<JobLog> log)
      : host_(host), dir_(std::move(dir)), log_(std::move(log)), status_(std::move(status)) {}

  Host& host_;
  fs::path dir_;
  std::shared_ptr<JobLog> log_;
  mutable std::mutex mutex_;
  std::optional<JobStatus> status_;
};

}  // namespace fuse
