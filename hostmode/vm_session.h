#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>
#include <thread>

#include "base/clock.h"
#include "base/host.h"
#include "base/ids.h"
#include "base/log.h"
#include "base/result.h"
#include "guest/channel/client.h"
#include "hostmode/guest_line.h"
#include "hostmode/job_book.h"
#include "orchestrator/api/host_agent.h"

namespace fuse {

struct SessionLimits {
  LineLimits line{};
  // How long a call waits for a guest that does not answer just then.
  std::chrono::milliseconds patience{std::chrono::seconds(10)};
  // The same while a VM is being ended, when a guest that hangs must not hold it up.
  std::chrono::milliseconds goodbye{std::chrono::seconds(5)};
  // For the rest of the log at the end, as long as it keeps coming.
  std::chrono::milliseconds stalled_drain{std::chrono::seconds(10)};
};

// What the agent and one live guest say to each other: the job is started, its
// log flows into job.log, its result into job.json, whether anyone looks or not.
// Safe from several threads.
class VmSession {
 public:
  struct Context {
    Host& host;
    const Clock& clock;
    Log& log;
    SessionLimits limits{};
    // Called once the job's result is known, on a thread of the session's own.
    std::function<void()> on_result{};
  };

  // `first` is the connection on which the guest said its first hello, or null.
  static Result<std::shared_ptr<VmSession>> open(const Context& context, const fs::path& dir,
                                                 std::unique_ptr<GuestClient> first);
  VmSession(const VmSession&) = delete;
  VmSession& operator=(const VmSession&) = delete;
  ~VmSession();

  // The guest's connection.
  Result<std::shared_ptr<GuestClient>> guest(std::stop_token stop = {});
  // Connects again at once: a call has found the connection dead.
  void reconnect() { line_->look_now(); }

  Result<void> start_job(const JobSpec& job);
  // nothing when there never was one.
  std::optional<JobStatus> job();
  Result<void> stop_job();
  [[nodiscard]] const std::shared_ptr<JobLog>& log() const { return book_->log(); }

  // Before a VM is ended on purpose: ends the job and takes what is left of its
  // log and its result, as far as the guest answers.
  void drain();
  // Asks the guest to sync its disks and power off; false when it does not answer.
  bool power_off();
  // Its QEMU is gone.  Returns once nothing of this session runs any more: a job
  // without a result is lost, the log is finished.
  void end();
  // After end(): writes the job's state and its log into `dir`, which has neither.
  Result<void> write_anew(const fs::path& dir) const;

 private:
  VmSession(const Context& context, std::shared_ptr<JobBook> book)
      : context_(context), book_(std::move(book)) {}
  void heard(const GuestHello& hello);
  Result<void> hand_over(const JobSpec& job);
  void pump(std::stop_token stop);
  bool await_job(std::stop_token stop);
  // Whether the log is complete and the result known.
  bool pump_once(GuestClient& guest, std::stop_token stop);
  bool take_result(GuestClient& guest, std::stop_token stop);
  void pause(std::chrono::milliseconds time, std::stop_token stop);
  void wake();

  Context context_;
  std::shared_ptr<JobBook> book_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  int starting_ = 0;  // calls that are handing a job over
  bool drained_ = false;
  std::unique_ptr<GuestLine> line_;
  std::jthread pump_;  // last: it uses all of the above
};

}  // namespace fuse
