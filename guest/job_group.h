#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/fd.h"
#include "base/host.h"

namespace fuse {

// All processes of a job, daemons it left included: a cgroup where there is
// cgroup v2, else the process groups of those that were started.
class JobGroup {
 public:
  // `parent`: a folder of a mounted cgroup v2, or empty for none.  What an earlier
  // group of the same place still holds is killed.
  explicit JobGroup(const fs::path& parent);
  JobGroup(const JobGroup&) = delete;
  JobGroup& operator=(const JobGroup&) = delete;
  // Kills what is left.
  ~JobGroup();

  // The descriptor by which a process joins before it runs; -1 without a cgroup.
  [[nodiscard]] int join_fd() const { return procs_.get(); }
  // A process that was started, the leader of its own process group.
  void add(pid_t leader) { leaders_.push_back(leader); }
  void signal(int number);
  void kill();
  [[nodiscard]] bool empty() const;
  // How many of its processes the kernel has killed for want of memory.
  [[nodiscard]] std::uint64_t oom_kills() const;

 private:
  [[nodiscard]] bool has_cgroup() const { return procs_.valid(); }

  fs::path cgroup_{};
  Fd procs_{};
  std::uint64_t oom_kills_before_ = 0;
  std::vector<pid_t> leaders_{};
};

}  // namespace fuse
