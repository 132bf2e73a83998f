#pragma once

#include <string>
#include <vector>

#include "orchestrator/api/host_agent.h"

namespace fuse {

// A job that runs detached in a guest whose host's agent has no job routes: plain
// sh files in a folder of the guest, written and asked by upload and exec alone.
//
//   step-N.sh, run.sh   what the job does
//   main.sh             the steps and the run one after another, with the job's env
//   watch.sh            runs main.sh in a session of its own, with its time limit
//   log, state files    its merged output; where it is and how it ended
//
// sh, setsid, kill and the usual small programs are all that the guest must have.
class ExecJobScript {
 public:
  explicit ExecJobScript(std::string folder) : folder_(std::move(folder)) {}

  // What is uploaded before the start.
  [[nodiscard]] std::vector<UploadFile> files(const JobSpec& job) const;
  // Starts what was uploaded and returns at once; exits with `had_one` when the
  // guest has had a job.
  [[nodiscard]] std::string start() const;
  static constexpr int had_one = 17;
  // Prints NAME=VALUE lines for parse_exec_job(); exits with `no_job` without a job.
  [[nodiscard]] std::string status() const;
  static constexpr int no_job = 18;
  // TERM to the job, and KILL once its grace is over; does not wait.
  [[nodiscard]] std::string stop() const;
  // Prints at most `most` bytes of the log from `offset` on.
  [[nodiscard]] std::string read_log(std::uint64_t offset, std::uint64_t most) const;
  // Prints where the last `lines` lines of the log begin.
  [[nodiscard]] std::string tail_offset(std::uint64_t lines) const;

 private:
  [[nodiscard]] std::string file(std::string_view name) const;
  [[nodiscard]] std::string main_script(const JobSpec& job) const;
  [[nodiscard]] std::string watch_script(const JobSpec& job) const;

  std::string folder_;
};

// What status() printed; internal when it is not that.
Result<JobStatus> parse_exec_job(std::string_view text);

}  // namespace fuse
