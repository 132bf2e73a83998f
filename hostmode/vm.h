#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>

#include "base/fd.h"
#include "base/result.h"
#include "hostmode/qemu_process.h"
#include "hostmode/vm_record.h"
#include "hostmode/vm_session.h"
#include "orchestrator/api/host_agent.h"

namespace fuse {

// Calls back, on a thread of its own, now and then while a QEMU runs and once when
// it has ended.  Dropping it ends the watch.
class QemuWatch {
 public:
  struct Calls {
    std::chrono::milliseconds interval{};
    std::function<void()> on_look{};
    std::function<void()> on_exit{};
  };
  static Result<std::unique_ptr<QemuWatch>> begin(std::shared_ptr<QemuProcess> qemu, Calls calls);

 private:
  explicit QemuWatch(Fd wake) : wake_(std::move(wake)) {}
  Fd wake_;
  std::jthread thread_;  // last: it uses the above
};

// One VM of the agent: its record, and what drives it while it is alive.  Safe
// from several threads.
//
//   creating -> running -> ended -> destroying -> gone
//   creating -> gone                when the creation failed
//   running  -> destroying          and back when destroying failed
class Vm {
 public:
  enum class Phase { creating, running, ended, destroying, gone };

  Vm(VmRecord record, Phase phase) : record_(std::move(record)), phase_(phase) {}

  [[nodiscard]] VmRecord record() const;
  [[nodiscard]] Phase phase() const;
  [[nodiscard]] VmInfo info() const;
  // Null unless it runs or ran under this agent.
  [[nodiscard]] std::shared_ptr<VmSession> session() const;
  [[nodiscard]] std::shared_ptr<QemuProcess> qemu() const;
  void set_record(VmRecord record);
  // Notes in the record that it is being destroyed, whatever else becomes known of it
  // at the same time; the record as it is then.
  VmRecord note_destroying();

  // For the one who creates it.
  [[nodiscard]] std::stop_token cancelled() const { return cancel_.get_token(); }
  void run(std::shared_ptr<QemuProcess> qemu, std::shared_ptr<VmSession> session);
  void fail(Error error);
  // For everyone else: returns when it is created, with the error if it failed.
  Result<void> await_created();

  void watch(std::unique_ptr<QemuWatch> watch);
  // Why it is about to end, where we know better than what QEMU leaves behind.
  void doom(const std::string& reason);
  // Runs `settle` on the first call; every call returns when that is done.
  void end_once(const std::function<void()>& settle);

  // Takes the right to destroy it, once a creation has been cancelled and another
  // destruction has come to its end; false when it is gone by then.
  bool begin_destroy();
  void end_destroy(bool done);

 private:
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  VmRecord record_;
  Phase phase_;
  std::optional<Error> failure_{};
  std::stop_source cancel_;
  std::shared_ptr<QemuProcess> qemu_;
  std::shared_ptr<VmSession> session_;
  std::once_flag ended_;
  std::unique_ptr<QemuWatch> watch_;  // last: its thread uses all of the above
};

}  // namespace fuse
