#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>

#include "cmd/context.h"
#include "cmd/interruption.h"
#include "cmd/watcher.h"

namespace fuse::cmd {

// How far the following of a job came.
struct Followed {
  enum class End {
    job_ended,          // `job` is its result; of a lost one `error` may say why
    environment_ended,  // before there was a job, or without one: `error` says why
    no_job,             // it runs, but the orchestrator knows of no job
    detached,           // the view was ended; the job goes on
    failed,             // we could not go on: `error`
  };
  End end = End::failed;
  std::optional<JobStatus> job{};
  Error error{};
  std::uint64_t offset = 0;  // of the first byte of output that was not shown
};

// Follows the job of one environment to its end: its steps go to a Progress,
// its output, byte for byte, to `out`.
class JobFollower {
 public:
  JobFollower(Context& context, EnvironmentApi& api, Environment environment, Progress& progress,
              Interruption& interruption);

  Followed follow();
  // Waits until the environment is gone, for a minute at most.  Whether it is.
  [[nodiscard]] bool wait_for_removal();

 private:
  Observed wait_for_job();
  Followed result_of(const Observed& observed);
  Followed detached() const;
  Followed failed(const Error& error) const;
  // Writes the output until the job has ended and all of it is out.
  Result<void> stream();
  Followed result();

  Context& context_;
  EnvironmentApi& api_;
  Environment environment_;
  std::string uid_;
  Progress& progress_;
  Interruption& interruption_;
  Watcher watcher_;
  std::atomic<std::uint64_t> offset_{0};
};

// Says on `err` that the job goes on, and how to come back to it.
void say_detached(const Context& context, const std::string& id, std::uint64_t offset);

}  // namespace fuse::cmd
