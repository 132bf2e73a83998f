#pragma once

#include <sys/types.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/host.h"
#include "base/result.h"
#include "guest/event_loop.h"

namespace fuse {

// A process to start in a session of its own, so that its process group is its
// pid.
struct ChildSpec {
  std::vector<std::string> argv{};         // argv[0] is looked up in env's PATH
  std::string argv0{};                     // what it sees as argv[0]; empty: the same
  std::vector<std::string> environment{};  // "K=V"
  fs::path directory{};                    // empty: ours
  int stdin_fd = -1;                       // -1: /dev/null
  int stdout_fd = -1;
  int stderr_fd = -1;
  bool terminal = false;  // stdin_fd is a terminal: make it the controlling one
  int cgroup_fd = -1;     // an open cgroup.procs to join first
};

// Why a process could not be started, as a shell's exit code: 127 when there is
// no such command, 126 when it cannot be run.
struct StartFailure {
  int code = 127;
  std::string message{};
};

// The agent's children, and whatever it inherits as pid 1 or subreaper.
class Children {
 public:
  using OnExit = std::function<void(ExitStatus status)>;

  // Takes SIGCHLD from here on.  Only one can be.
  static Result<std::unique_ptr<Children>> create(EventLoop& loop);
  explicit Children(Fd signals) : signals_(std::move(signals)) {}
  Children(const Children&) = delete;
  Children& operator=(const Children&) = delete;
  ~Children() = default;

  // Starts it; `on_exit` is called when it has ended and was reaped.
  Result<pid_t> start(const ChildSpec& spec, OnExit on_exit);
  // on_exit is not called any more; the process is reaped all the same.
  void forget(pid_t pid) { waiting_.erase(pid); }
  // What start() failed with, as a shell would tell.
  static StartFailure failure_of(const ChildSpec& spec, const Error& error);

 private:
  void reap();

  Fd signals_;
  EventLoop::Registration watch_{};
  std::map<pid_t, OnExit> waiting_{};
};

// The environment every process of a guest begins with, `over` laid over it.
std::vector<std::string> guest_environment(const std::map<std::string, std::string>& over);

}  // namespace fuse
