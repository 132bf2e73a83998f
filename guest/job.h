#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/host.h"
#include "base/result.h"
#include "guest/channel/messages.h"
#include "guest/children.h"
#include "guest/event_loop.h"
#include "guest/job_group.h"
#include "guest/spool.h"

namespace fuse {

// Where a job keeps what.  All are laid under the agent's root already.
struct JobPlaces {
  fs::path root{};                   // laid before the workdirs
  fs::path state{};                  // result and log: survives the agent
  fs::path run{};                    // scripts
  fs::path cgroup{};                 // parent of the job's cgroup; empty: none
  std::uint64_t most_log_bytes = 0;  // 0: spool_limit()
};

// The one job of a guest: its steps and its script, one after another, their
// output into a spool, its result onto disk.  The environment it is given is
// handed to its processes and written nowhere.
class Job {
 public:
  Job(EventLoop& loop, Children& children, JobPlaces places, std::string boot_id);
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  ~Job() = default;

  // Takes up what an earlier agent left: a job that had not ended is lost, and
  // what still runs of it is killed.
  void load();
  // conflict when there is or was one, unless it has the same key.
  Result<void> start(const std::string& key, JobSpec spec);
  // TERM now, KILL after the grace (0: the job's own, or 30 s).
  Result<void> stop(std::chrono::seconds grace);
  // KILL now, as part of the guest's own end.
  void kill();

  // Nothing when there never was one.
  [[nodiscard]] std::optional<GuestJob> status() const;
  // It has ended, its log is complete and its result known; or there is none.
  [[nodiscard]] bool has_ended() const;
  // The log; null without a job.
  [[nodiscard]] Spool* log() { return spool_.get(); }
  void acknowledge(std::uint64_t offset);

  // Calls the listener whenever the log has grown or the job has ended, until
  // forget().
  int listen(std::function<void()> listener);
  void forget(int listener) { listeners_.erase(listener); }

 private:
  Result<void> prepare(const std::string& key);
  Result<void> open_pipe();
  void start_timeout();
  void start_next();
  Result<void> start_script(const std::string& script, const std::string& workdir);
  void on_exit(ExitStatus status);
  void request_end(std::string reason, std::chrono::seconds grace);
  void end(ExitStatus status);
  void kill_group();
  void await_group();
  void finish();
  void drain_pipe();
  void on_pipe();
  void read_when_room();
  void save();
  void notify();

  EventLoop& loop_;
  Children& children_;
  JobPlaces places_;
  std::string boot_id_;
  std::optional<GuestJob> record_{};
  std::unique_ptr<Spool> spool_{};

  // While it runs.
  JobSpec spec_{};
  std::size_t next_ = 0;
  std::unique_ptr<JobGroup> group_{};
  Fd pipe_read_{};
  Fd pipe_write_{};
  EventLoop::Registration pipe_watch_{};
  EventLoop::Registration timeout_{};
  EventLoop::Registration kill_timer_{};
  EventLoop::Registration group_timer_{};
  EventLoop::Registration flush_timer_{};
  EventLoop::Registration save_timer_{};
  std::string end_reason_{};                 // why we end it, when we do
  std::optional<ExitStatus> main_status_{};  // of the script that decided its end
  bool killed_ = false;
  int group_looks_ = 0;

  int next_listener_ = 1;
  std::map<int, std::function<void()>> listeners_{};
};

}  // namespace fuse
