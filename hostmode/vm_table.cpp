#include "hostmode/vm_table.h"

#include "base/text.h"

namespace fuse {

std::shared_ptr<Vm> VmTable::holder(const VmRecord& record) const {
  for (const auto& [uid, vm] : by_uid_) {
    if (uid == record.uid || vm->record().vm_id == record.vm_id) return vm;
  }
  return nullptr;
}

Result<VmTable::Reservation> VmTable::reserve(const VmRecord& record) {
  const std::scoped_lock lock(mutex_);
  if (!record.idempotency_key.empty()) {
    for (const auto& [uid, vm] : by_uid_) {
      if (vm->record().idempotency_key == record.idempotency_key) return Reservation{vm, false};
    }
  }
  if (holder(record) != nullptr) {
    return Error{ErrorCode::conflict, cat("vm ", record.vm_id, " already exists")};
  }
  auto vm = std::make_shared<Vm>(record, Vm::Phase::creating);
  by_uid_[record.uid] = vm;
  return Reservation{vm, true};
}

Result<std::shared_ptr<Vm>> VmTable::take_up(const VmRecord& record, Vm::Phase phase) {
  const std::scoped_lock lock(mutex_);
  if (const auto other = holder(record); other != nullptr) {
    return Error{ErrorCode::conflict,
                 cat("vm ", record.vm_id, " exists twice, also as ", other->record().uid)};
  }
  auto vm = std::make_shared<Vm>(record, phase);
  by_uid_[record.uid] = vm;
  return vm;
}

void VmTable::remove(const std::string& uid) {
  std::shared_ptr<Vm> last;  // outlives the lock: its destructor waits for a thread
  const std::scoped_lock lock(mutex_);
  const auto found = by_uid_.find(uid);
  if (found == by_uid_.end()) return;
  last = std::move(found->second);
  by_uid_.erase(found);
}

std::shared_ptr<Vm> VmTable::find(const std::string& id) const {
  const std::string vm_id = vm_id_of(id);
  const std::scoped_lock lock(mutex_);
  if (const auto found = by_uid_.find(id); found != by_uid_.end()) return found->second;
  for (const auto& [uid, vm] : by_uid_) {
    if (vm->record().vm_id == vm_id) return vm;
  }
  return nullptr;
}

std::vector<std::shared_ptr<Vm>> VmTable::all() const {
  const std::scoped_lock lock(mutex_);
  std::vector<std::shared_ptr<Vm>> out;
  for (const auto& [uid, vm] : by_uid_) out.push_back(vm);
  return out;
}

}  // namespace fuse
