#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/posix_host.h"
#include "hostmode/agent.h"
#include "tests/hostmode/test_dir.h"

namespace fuse {

// A host with the fake QEMU, and agents on it one after another.
class FakeQemuHost {
 public:
  FakeQemuHost();
  ~FakeQemuHost();
  FakeQemuHost(const FakeQemuHost&) = delete;
  FakeQemuHost& operator=(const FakeQemuHost&) = delete;

  // What the next QEMUs do; see fake_qemu.py.  `extra` is JSON without braces.
  void plan(const std::string& extra);
  void plan_silent_guest(const std::string& extra = "");
  // Of the agents that are started from now on.
  AgentConfig config{};
  ResetTools reset{};
  std::function<Result<void>(std::uint64_t bytes)> allow_locking = [](std::uint64_t /*bytes*/) {
    return Result<void>();
  };
  // How often the agent has told of an end.
  std::atomic<int> ends{0};
  // The agent; the first call starts it.
  Agent& agent();
  Result<std::unique_ptr<Agent>> start_agent(Host& on);
  // Drops the agent, as its process' end would.
  void drop_agent() { agent_.reset(); }

  // The one VM of most tests.
  VmInfo create(const std::string& name = "fuse-train");
  Result<ExecResult> shell(const std::string& script, const std::string& vm_id = "fuse-train");
  // Kills every process of this host, as a power cut would.
  void kill_all();

  [[nodiscard]] const fs::path& root() const { return dir_.path(); }
  [[nodiscard]] StatePaths paths() const { return StatePaths(root() / "state"); }
  PosixHost host;

 private:
  TestDir dir_;
  SystemClock clock_;
  NullLog log_;
  std::unique_ptr<Agent> agent_;
};

// All of a job's log, followed to its end.
std::string whole_log(Agent& agent, const std::string& id);

}  // namespace fuse
