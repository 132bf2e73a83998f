#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace fuse {

namespace fs = std::filesystem;

// How a process ended: `signal` is 0 when it exited by itself with `code`.
struct ExitStatus {
  int code = 0;
  int signal = 0;
  [[nodiscard]] bool success() const { return code == 0 && signal == 0; }
  // What a shell would report: the code, or 128 + the signal.
  [[nodiscard]] int shell_code() const { return signal != 0 ? 128 + signal : code; }
};

// A process by its pidfd, so that a signal never reaches a recycled pid.
// Dropping a handle kills and reaps the process unless it was released.
class Process {
 public:
  virtual ~Process() = default;
  [[nodiscard]] virtual pid_t pid() const = 0;
  // Clock ticks since boot at which it started (/proc/PID/stat field 22): with
  // the pid, what identifies it after we restart.
  [[nodiscard]] virtual std::uint64_t start_time() const = 0;
  // Waits up to `timeout`; nothing while it still runs.  A process that is not
  // our child ends with code 0, since its status is its parent's.
  virtual Result<std::optional<ExitStatus>> wait(std::chrono::milliseconds timeout) = 0;
  // Success also when it is gone already.
  virtual Result<void> signal(int number) = 0;
  // From here on it outlives this handle.
  virtual void release() = 0;
};

// What to start.  No shell is involved.  Descriptors of ours are not inherited,
// other than the three named here; -1 is /dev/null.
struct SpawnSpec {
  std::vector<std::string> argv{};  // argv[0] is looked up in PATH unless it has a slash
  std::optional<std::vector<std::string>> environment{};  // "K=V"; absent: ours
  fs::path directory{};                                   // empty: ours
  int stdin_fd = -1;
  int stdout_fd = -1;
  int stderr_fd = -1;
  bool new_session = false;  // setsid(2): survives our terminal
};

// The machine we run on: its files and processes.  An implementation may lay
// every absolute path under a root of its own.
class Host {
 public:
  virtual ~Host() = default;
  virtual Result<std::string> read_file(const fs::path& file) = 0;
  // Writes in place, with one write(2), creating the file when it is missing:
  // for sysfs, whose files answer with an errno.
  virtual Result<void> write_file(const fs::path& file, std::string_view text) = 0;
  // Replaces the file whole: temporary file beside it, fsync, rename, fsync of
  // the folder.  After a crash it holds the old bytes or the new ones.
  virtual Result<void> replace_file(const fs::path& file, std::string_view text, mode_t mode) = 0;
  virtual Result<fs::path> read_link(const fs::path& link) = 0;
  // Names in a folder, sorted, without "." and "..".
  virtual Result<std::vector<std::string>> list_dir(const fs::path& dir) = 0;
  // Also the missing parents; success when it is there.  Mode applies to new
  // ones.
  virtual Result<void> make_dirs(const fs::path& dir, mode_t mode) = 0;
  // A file or a whole folder; success when there is none.  Follows no symlink.
  virtual Result<void> remove_all(const fs::path& path) = 0;
  virtual Result<std::unique_ptr<Process>> spawn(const SpawnSpec& spec) = 0;
};

}  // namespace fuse
