#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/host.h"
#include "hostmode/vm_record.h"

namespace fuse {

// A QEMU that runs on whatever becomes of us: dropping this never ends it.  Safe
// from several threads.
class QemuProcess {
 public:
  // Takes over a process handle, of a child or of one that was adopted.
  static Result<std::shared_ptr<QemuProcess>> hold(std::unique_ptr<Process> process, bool child);
  QemuProcess(const QemuProcess&) = delete;
  QemuProcess& operator=(const QemuProcess&) = delete;
  ~QemuProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }
  [[nodiscard]] std::uint64_t start_time() const { return start_time_; }
  // Readable once it has ended; for poll(2).
  [[nodiscard]] int exit_fd() const { return pidfd_.get(); }
  // Whether how it ended can be known: only of our own children.
  [[nodiscard]] bool is_child() const { return child_; }

  // Waits up to `timeout`; nothing while it runs.
  Result<std::optional<ExitStatus>> wait(std::chrono::milliseconds timeout);
  [[nodiscard]] bool running();
  Result<void> signal(int number);

 private:
  QemuProcess(std::unique_ptr<Process> process, Fd pidfd, bool child);

  pid_t pid_;
  std::uint64_t start_time_;
  bool child_;
  Fd pidfd_;
  std::mutex mutex_;
  std::unique_ptr<Process> process_;
};

// How long each way of ending a QEMU may take before the next one is tried.
struct StopLimits {
  std::chrono::milliseconds power_off{std::chrono::seconds(15)};
  std::chrono::milliseconds quit{std::chrono::seconds(5)};
  std::chrono::milliseconds terminate{std::chrono::seconds(5)};
  std::chrono::milliseconds kill{std::chrono::seconds(30)};
};

// Starts `argv` with `dir` as its folder, in a session of its own, its output
// appended to qemu.log.  Removes sockets of an earlier one first.
Result<std::shared_ptr<QemuProcess>> launch_qemu(Host& host, const fs::path& dir,
                                                 const std::vector<std::string>& argv);

// The process that a record names, if it is still that one: same boot of the
// host, same pid and start time.  not_found when it is gone.  Its monitor must
// be asked besides.
Result<std::shared_ptr<QemuProcess>> adopt_qemu(const VmProcess& process,
                                                const std::string& boot_id);

// Looks through all processes for a QEMU with this -uuid: one that was started
// when we died before we could write down its pid.  not_found when there is none.
Result<std::shared_ptr<QemuProcess>> find_qemu(Host& host, const std::string& uid);

// Whether `dir` is the folder that the QEMU runs in.  False only when that is
// certain: the folder was removed or moved, or there is another one in its place.
bool runs_in(const QemuProcess& qemu, const fs::path& dir);

// The uids of the QEMUs that run in folders of `vms` which are no longer there.
Result<std::vector<std::string>> find_homeless(Host& host, const fs::path& vms);

// Ends it: asks its monitor to quit, then SIGTERM, then SIGKILL.  Returns when it
// has ended; unavailable when even SIGKILL did not do.
Result<void> stop_qemu(QemuProcess& qemu, const fs::path& dir, const StopLimits& limits);

// Why a QEMU that has ended did so, from its status and the last it wrote.
std::string describe_end(const fs::path& dir, const std::optional<ExitStatus>& status);

// The last lines of the guest's console, or "" when it wrote nothing.
std::string last_console_lines(const fs::path& dir, std::size_t lines);

}  // namespace fuse
