#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "hostmode/vm.h"

namespace fuse {

// All VMs of the agent by uid.  Safe from several threads.
class VmTable {
 public:
  struct Reservation {
    std::shared_ptr<Vm> vm{};
    bool fresh = false;  // false: made earlier under the same idempotency key
  };

  // Gives `record` its place, so that no other VM gets its vm_id or uid.  conflict
  // when they are in use, other than by a VM of the same idempotency key.
  Result<Reservation> reserve(const VmRecord& record);
  // One that was found on disk.  conflict as above, whatever the key.
  Result<std::shared_ptr<Vm>> take_up(const VmRecord& record, Vm::Phase phase);
  void remove(const std::string& uid);

  // By uid or vm_id; null when there is none.
  [[nodiscard]] std::shared_ptr<Vm> find(const std::string& id) const;
  // In the order of their uids, which is that of their creation.
  [[nodiscard]] std::vector<std::shared_ptr<Vm>> all() const;

 private:
  [[nodiscard]] std::shared_ptr<Vm> holder(const VmRecord& record) const;

  mutable std::mutex mutex_;
  std::map<std::string, std::shared_ptr<Vm>> by_uid_;
};

}  // namespace fuse
