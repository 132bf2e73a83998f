#include "hostmode/receipts.h"

#include <algorithm>
#include <array>
#include <system_error>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "hostmode/job_book.h"

namespace fuse {

namespace {

std::uint64_t bytes_in(const fs::path& dir) {
  std::uint64_t bytes = 0;
  std::error_code failure;
  for (const std::string_view name : {vm_file::record, vm_file::job, vm_file::job_log}) {
    const auto size = fs::file_size(dir / name, failure);
    if (!failure) bytes += size;
  }
  return bytes;
}

// Success also when there is nothing to move: an interrupted move has done it.
Result<void> move_if_there(const fs::path& from, const fs::path& to) {
  std::error_code failure;
  fs::rename(from, to, failure);
  if (!failure || failure == std::errc::no_such_file_or_directory) return {};
  return errno_error(cat("move ", from.native(), " to ", to.native()), failure.value());
}

}  // namespace

std::vector<std::string> expired_receipts(std::vector<ReceiptEntry> receipts, WallTime now,
                                          const ReceiptLimits& limits) {
  std::ranges::sort(receipts, [](const ReceiptEntry& a, const ReceiptEntry& b) {
    return std::pair(a.ended, a.uid) < std::pair(b.ended, b.uid);
  });
  std::uint64_t bytes = 0;
  for (const ReceiptEntry& receipt : receipts) bytes += receipt.bytes;
  std::vector<std::string> expired;
  for (const ReceiptEntry& receipt : receipts) {
    const bool old = receipt.ended + limits.age < now;
    if (!old && bytes <= limits.bytes) break;
    expired.push_back(receipt.uid);
    bytes -= receipt.bytes;
  }
  return expired;
}

Result<ReceiptEntry> Receipts::read_entry(const std::string& uid) const {
  const auto text = host_.read_file(paths_.receipt(uid, vm_file::record));
  if (!text) return text.error();
  const auto record = parse_vm_record(*text);
  if (!record) return record.error();
  return ReceiptEntry{.uid = uid,
                      .vm_id = record->vm_id,
                      .ended = parse_rfc3339(record->ended_at).value_or(WallTime{}),
                      .bytes = bytes_in(paths_.receipt(uid))};
}

Result<void> Receipts::load() {
  if (auto made = host_.make_dirs(paths_.receipts(), 0700); !made) return made;
  const auto names = host_.list_dir(paths_.receipts());
  if (!names) return names.error();
  for (const std::string& uid : *names) {
    const auto entry =
        is_uid(uid) ? read_entry(uid)
                    : Result<ReceiptEntry>(Error{ErrorCode::internal, "its name is not a uid"});
    if (!entry) {
      log_.warning("a receipt cannot be read", {{"uid", uid}, {"reason", entry.error().message}});
      continue;
    }
    const std::scoped_lock lock(mutex_);
    entries_[uid] = *entry;
  }
  return {};
}

Result<void> Receipts::keep(const VmRecord& record) {
  const fs::path from = paths_.vm(record.uid);
  const fs::path to = paths_.receipt(record.uid);
  if (auto made = host_.make_dirs(to, 0700); !made) return made;
  for (const std::string_view name : {vm_file::job, vm_file::job_log}) {
    if (auto moved = move_if_there(from / name, to / name); !moved) return moved;
  }
  if (auto synced = sync_dir(to); !synced) return synced;
  auto kept = host_.replace_file(to / vm_file::record, to_text(record), 0600);
  if (!kept) return kept;
  const auto entry = read_entry(record.uid);
  if (!entry) return entry.error();
  const std::scoped_lock lock(mutex_);
  entries_[record.uid] = *entry;
  return {};
}

void Receipts::prune() {
  std::vector<ReceiptEntry> all;
  {
    const std::scoped_lock lock(mutex_);
    for (const auto& [uid, entry] : entries_) all.push_back(entry);
  }
  for (const std::string& uid : expired_receipts(std::move(all), clock_.wall(), limits_)) {
    if (auto removed = host_.remove_all(paths_.receipt(uid)); !removed) {
      log_.warning("cannot remove a receipt", {{"uid", uid}, {"reason", removed.error().message}});
      continue;
    }
    const std::scoped_lock lock(mutex_);
    entries_.erase(uid);
  }
}

std::optional<std::string> Receipts::find(const std::string& id) const {
  const std::string vm_id = vm_id_of(id);
  const std::scoped_lock lock(mutex_);
  if (entries_.contains(id)) return id;
  const ReceiptEntry* newest = nullptr;
  for (const auto& [uid, entry] : entries_) {
    if (entry.vm_id != vm_id) continue;
    if (newest == nullptr || entry.ended >= newest->ended) newest = &entry;
  }
  if (newest == nullptr) return std::nullopt;
  return newest->uid;
}

Result<std::optional<JobStatus>> Receipts::job(const std::string& uid) const {
  return read_job(host_, paths_.receipt(uid));
}

Result<std::shared_ptr<JobLog>> Receipts::log(const std::string& uid) const {
  return JobLog::open_finished(paths_.receipt(uid, vm_file::job_log));
}

}  // namespace fuse
