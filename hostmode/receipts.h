#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/host.h"
#include "base/log.h"
#include "base/result.h"
#include "hostmode/job_log.h"
#include "hostmode/vm_paths.h"
#include "hostmode/vm_record.h"
#include "orchestrator/api/types.h"

namespace fuse {

struct ReceiptLimits {
  std::chrono::hours age{24 * 7};
  std::uint64_t bytes = std::uint64_t{5} << 30U;
};

// What is known of an ended VM without opening its receipt.
struct ReceiptEntry {
  std::string uid{};
  std::string vm_id{};
  WallTime ended{};
  std::uint64_t bytes = 0;
};

// Which receipts must go, oldest first: those beyond the age, then as many as it
// takes to be within the bytes.
std::vector<std::string> expired_receipts(std::vector<ReceiptEntry> receipts, WallTime now,
                                          const ReceiptLimits& limits);

// What stays of VMs that were destroyed: their record, their job's result and its
// log.  Safe from several threads.
class Receipts {
 public:
  Receipts(Host& host, const Clock& clock, Log& log, StatePaths paths, const ReceiptLimits& limits)
      : host_(host), clock_(clock), log_(log), paths_(std::move(paths)), limits_(limits) {}

  // Reads what is there; unreadable ones are said and left alone.
  Result<void> load();
  // Moves what is to be kept out of an ended VM's folder.  May be done again after
  // it was interrupted anywhere.
  Result<void> keep(const VmRecord& record);
  // Removes what is beyond the limits.
  void prune();

  // The uid of the receipt that `id`, a uid or a vm_id, means: the newest.
  [[nodiscard]] std::optional<std::string> find(const std::string& id) const;
  Result<std::optional<JobStatus>> job(const std::string& uid) const;
  Result<std::shared_ptr<JobLog>> log(const std::string& uid) const;

 private:
  Result<ReceiptEntry> read_entry(const std::string& uid) const;

  Host& host_;
  const Clock& clock_;
  Log& log_;
  StatePaths paths_;
  ReceiptLimits limits_;
  mutable std::mutex mutex_;
  std::map<std::string, ReceiptEntry> entries_;
};

}  // namespace fuse
