#pragma once

#include <chrono>
#include <memory>
#include <optional>

#include "guest/channel/messages.h"
#include "guest/children.h"
#include "guest/event_loop.h"
#include "guest/server_link.h"

namespace fuse {

// A process whose input and output a stream carries.
struct ProcessPlan {
  ChildSpec child{};                       // without its descriptors
  std::optional<TerminalSize> terminal{};  // on a pty of this size
  bool has_input = true;                   // else stdin is /dev/null
  std::chrono::milliseconds timeout{};     // 0: none
};

ProcessPlan plan_exec(const ExecOperation& operation, const fs::path& root);
// No command means a login shell: root's own, where `root` has one.
ProcessPlan plan_attach(const AttachOperation& operation, const fs::path& root);

// Starts it.  Its output is sent as there is credit, so a host that does not read
// stops the process, and only that one.  Once the process has ended, what it
// wrote is sent, and not what daemons that hold its pipes still write.  Dropping
// the handler kills the process group.  A process that cannot be started ends the
// stream as a shell would: a line on stderr and code 126 or 127.
std::unique_ptr<StreamHandler> start_process(EventLoop& loop, Children& children,
                                             ServerStream& stream, const ProcessPlan& plan);

}  // namespace fuse
