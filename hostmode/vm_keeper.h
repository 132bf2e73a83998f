#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "hostmode/agent_config.h"
#include "hostmode/firmware.h"
#include "hostmode/hypervisor.h"
#include "hostmode/qemu_argv.h"
#include "hostmode/qmp_client.h"
#include "hostmode/receipts.h"
#include "hostmode/state_dir.h"
#include "hostmode/vm_table.h"
#include "orchestrator/api/host_agent.h"

namespace fuse {

// Makes VMs, ends them, and finds them again after a restart.  Each step is on
// disk before the next one, so that whatever is interrupted can be finished or
// undone.  Safe from several threads; no lock is held while a VM boots or ends.
class VmKeeper {
 public:
  VmKeeper(AgentWorld world, AgentConfig config);
  VmKeeper(const VmKeeper&) = delete;
  VmKeeper& operator=(const VmKeeper&) = delete;
  ~VmKeeper();

  // Once, before anything else: takes up what an earlier agent left.
  Result<void> recover();

  Result<VmInfo> create(const CreateVmRequest& request);
  Result<void> destroy(const std::string& id);

  // By uid or vm_id, when it is created; not_found "vm not found", unavailable when
  // it is set aside.
  Result<std::shared_ptr<Vm>> find(const std::string& id);
  // Returns once everything that the end of its QEMU means is known of a VM; at once
  // while that runs.
  void settle(Vm& vm);
  // One that was set aside, by uid.
  [[nodiscard]] std::optional<QuarantinedVm> set_aside(const std::string& id) const {
    return quarantine_.find(id);
  }
  [[nodiscard]] const VmTable& table() const { return table_; }
  [[nodiscard]] const Receipts& receipts() const { return receipts_; }
  [[nodiscard]] const StatePaths& paths() const { return paths_; }
  [[nodiscard]] const AgentConfig& config() const { return config_; }
  [[nodiscard]] AgentWorld& world() { return world_; }
  [[nodiscard]] std::vector<QuarantinedVm> quarantined() const { return quarantine_.list(); }

  // What is done now and then: old receipts go, consoles are cut short.
  void tidy();
  // What else happens by itself, every few seconds for each VM.
  void look_after_all();

 private:
  // vm_create.cpp
  Result<VmRecord> record_of(const CreateVmRequest& request) const;
  Result<void> allocate(const CreateVmRequest& request, Vm& vm, VmRecord& record);
  Result<void> check_programs() const;
  Result<void> build(Vm& vm, const CreateVmRequest& request);
  Result<void> make_firmware_files(const VmRecord& record, const Firmware& firmware) const;
  Result<QemuFacts> qemu_facts(const VmRecord& record);
  Result<void> boot(Vm& vm, VmRecord record);
  Result<AccelChoice> accel();
  Result<void> try_kvm(const Image& image);
  Result<void> begin_session(Vm& vm, BootedVm booted);

  // vm_destroy.cpp
  Result<void> end_and_remove(Vm& vm);
  Result<void> destroy_unknown(const std::string& id);
  Result<void> destroy_set_aside(const QuarantinedVm& vm);
  void look_after(Vm& vm);
  void let_go_on(const VmRecord& record);
  void settle_end(Vm& vm);
  Result<void> replace_folder(const Vm& vm) const;
  Result<void> remove_folder(const std::string& uid);
  Result<void> write(Vm& vm, const VmRecord& record);

  // vm_release.cpp
  // Takes back the devices of a VM whose QEMU is gone, unless that was done: into the
  // record.  On an error they stay the VM's.
  Result<void> release(VmRecord& record);
  Result<void> release(Vm& vm);
  // Of one whose creation failed.
  Result<void> take_back(const Vm& vm);

  // vm_recover.cpp
  Result<void> recover_folder(const std::string& name);
  Result<void> recover_vm(const VmRecord& record);
  Result<void> recover_running(VmRecord record);
  Result<void> recover_ended(VmRecord record);
  Result<void> undo_creation(const VmRecord& record);
  Result<void> finish_destruction(const VmRecord& record);
  Result<void> end_any_qemu(const std::string& uid);
  void end_homeless();
  Result<void> clear_probes();
  void check_net(const VmRecord& record, QmpClient& qmp);

  AgentWorld world_;
  AgentConfig config_;
  StatePaths paths_;
  std::string boot_id_;
  std::optional<StateDir> state_dir_;
  Quarantine quarantine_;
  Receipts receipts_;
  std::mutex allocation_mutex_;
  std::mutex release_mutex_;  // one at a time writes down what is set aside
  std::mutex accel_mutex_;    // held through the trial: the others wait for its outcome
  std::optional<AccelChoice> accel_;
  VmTable table_;  // last: the threads of its VMs use all of the above
};

}  // namespace fuse
