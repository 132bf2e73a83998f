#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>

#include "base/fd.h"
#include "guest/children.h"
#include "guest/event_loop.h"

namespace fuse {

// A command that the agent runs for itself.
struct CommandPlan {
  ChildSpec child{};                    // without its descriptors
  std::chrono::milliseconds timeout{};  // 0: none
  std::size_t most_output = 4096;       // the last bytes that are kept of it
};

struct CommandResult {
  ExitStatus status{};     // 126 or 127 when it could not be started, as a shell's
  bool timed_out = false;  // killed, and perhaps not gone yet
  std::string output{};    // the end of what it printed, stdout and stderr as one
};

// One run of a command in a process group of its own.  Dropping it kills the
// group.
class Command {
 public:
  using OnDone = std::function<void(const CommandResult& result)>;

  // `on_done` is called once, from the loop.  It may not drop the command.
  static Result<std::unique_ptr<Command>> start(EventLoop& loop, Children& children,
                                                CommandPlan plan, OnDone on_done);
  Command(EventLoop& loop, Children& children, CommandPlan plan, OnDone on_done);
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;
  ~Command();

  // Its process is not gone: one that waits for a device outlives its KILL.
  [[nodiscard]] bool is_running() const { return pid_ > 0; }

 private:
  Result<void> begin();
  void read_output();
  void on_exit(ExitStatus status);
  void on_timeout();
  void finish(const CommandResult& result);

  EventLoop& loop_;
  Children& children_;
  CommandPlan plan_;
  OnDone on_done_;
  pid_t pid_ = -1;
  Fd output_{};
  std::string kept_{};
  EventLoop::Registration watch_{};
  EventLoop::Registration timer_{};
};

}  // namespace fuse
