#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "base/host.h"
#include "guest/channel/names.h"
#include "guest/port.h"

namespace fuse {

struct AgentOptions {
  PortPlace port{.virtio_name = std::string(guest_port_name)};
  // How long a virtio port may take to appear.
  std::chrono::milliseconds patience{std::chrono::seconds(30)};
  // Laid before every path the agent uses or is told; programs run outside of it.
  fs::path root{};
  // A mounted cgroup v2; empty: jobs are process groups.
  fs::path cgroup{};
  // What a job's log may take before the job waits; 0: spool_limit().
  std::uint64_t most_log_bytes = 0;
  // It may set the clock and turn the power off.
  bool owns_machine = false;
  // Called once it can be reached.
  std::function<void()> on_ready = [] {};
};

// Serves hosts until one asks for shutdown, which, when the machine is the
// agent's own, is its end; else 0 is returned then, and 1 after a line on stderr
// when it cannot go on.  Takes over SIGCHLD of the process and all of its
// children.
int run_guest_agent(const AgentOptions& options);

}  // namespace fuse
