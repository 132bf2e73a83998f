#include "guest/job_group.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <string>
#include <thread>

#include "base/posix_host.h"
#include "base/text.h"

namespace fuse {

namespace {

// The number behind "NAME " in a file of such lines.
std::uint64_t counter_in(const fs::path& file, std::string_view name) {
  const auto text = PosixHost().read_file(file);
  if (!text) return 0;
  for (const std::string& line : split(*text, '\n')) {
    const auto fields = split(line, ' ');
    if (fields.size() < 2 || fields[0] != name) continue;
    return static_cast<std::uint64_t>(std::max<std::int64_t>(parse_int(fields[1]).value_or(0), 0));
  }
  return 0;
}

// The folder and all below it, deepest last.
std::vector<fs::path> tree_of(const fs::path& cgroup) {
  std::vector<fs::path> all = {cgroup};
  std::error_code failure;
  for (fs::recursive_directory_iterator it(cgroup, failure), end; !failure && it != end;
       it.increment(failure)) {
    if (it->is_directory(failure)) all.push_back(it->path());
  }
  return all;
}

bool is_populated(const fs::path& cgroup) {
  return counter_in(cgroup / "cgroup.events", "populated") != 0;
}

void kill_cgroup(const fs::path& cgroup) {
  (void)PosixHost().write_file(cgroup / "cgroup.kill", "1");
}

void remove_cgroup(const fs::path& cgroup) {
  auto all = tree_of(cgroup);
  // Deeper folders have longer paths than those they are in.
  std::ranges::sort(all, std::greater(), [](const fs::path& path) { return path.native().size(); });
  for (const fs::path& folder : all) ::rmdir(folder.c_str());
}

}  // namespace

JobGroup::JobGroup(const fs::path& parent) {
  oom_kills_before_ = counter_in("/proc/vmstat", "oom_kill");
  if (parent.empty()) return;
  (void)PosixHost().write_file(parent / "cgroup.subtree_control", "+memory +pids");
  cgroup_ = parent / "fuse-job";
  if (::mkdir(cgroup_.c_str(), 0755) < 0 && errno == EEXIST) {
    kill_cgroup(cgroup_);
    constexpr int looks = 100;
    for (int i = 0; i < looks && is_populated(cgroup_); ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    remove_cgroup(cgroup_);
    ::mkdir(cgroup_.c_str(), 0755);
  }
  procs_ = Fd(::open((cgroup_ / "cgroup.procs").c_str(), O_WRONLY | O_CLOEXEC));
}

JobGroup::~JobGroup() {
  kill();
  if (has_cgroup()) remove_cgroup(cgroup_);
}

void JobGroup::signal(int number) {
  if (!has_cgroup()) {
    for (const pid_t leader : leaders_) ::kill(-leader, number);
    return;
  }
  for (const fs::path& folder : tree_of(cgroup_)) {
    const auto pids = PosixHost().read_file(folder / "cgroup.procs");
    for (const std::string& line : split(pids ? *pids : "", '\n')) {
      const auto pid = parse_int(line);
      if (pid && *pid > 1) ::kill(static_cast<pid_t>(*pid), number);
    }
  }
}

void JobGroup::kill() {
  if (has_cgroup()) {
    kill_cgroup(cgroup_);
  } else {
    signal(SIGKILL);
  }
}

bool JobGroup::empty() const {
  if (has_cgroup()) return !is_populated(cgroup_);
  return std::ranges::all_of(leaders_,
                             [](pid_t leader) { return ::kill(-leader, 0) < 0 && errno == ESRCH; });
}

std::uint64_t JobGroup::oom_kills() const {
  if (has_cgroup()) {
    std::error_code failure;
    const fs::path events = cgroup_ / "memory.events";
    if (fs::exists(events, failure)) return counter_in(events, "oom_kill");
  }
  const std::uint64_t now = counter_in("/proc/vmstat", "oom_kill");
  return now - std::min(now, oom_kills_before_);
}

}  // namespace fuse
