#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "hostmode/vm_keeper.h"

namespace fuse {

Result<void> VmKeeper::write(Vm& vm, const VmRecord& record) {
  if (auto written = write_vm_record(world_.host, paths_, record); !written) return written;
  vm.set_record(record);
  return {};
}

Result<std::shared_ptr<Vm>> VmKeeper::find(const std::string& id) {
  const std::shared_ptr<Vm> vm = table_.find(id);
  if (vm == nullptr || !vm->await_created()) return Error{ErrorCode::not_found, "vm not found"};
  return vm;
}

Result<void> VmKeeper::destroy(const std::string& id) {
  const std::shared_ptr<Vm> vm = table_.find(id);
  if (vm == nullptr) return Error{ErrorCode::not_found, "vm not found"};
  if (!vm->begin_destroy()) return {};
  auto ended = end_and_remove(*vm);
  vm->end_destroy(ended.has_value());
  const std::string vm_id = vm->record().vm_id;
  if (!ended) return in_context(cat("destroy vm ", vm_id), ended.error());
  table_.remove(vm->record().uid);
  world_.log.info("a vm is gone", {{"vm", vm_id}, {"uid", vm->record().uid}});
  receipts_.prune();
  return {};
}

Result<void> VmKeeper::end_and_remove(Vm& vm) {
  VmRecord record = vm.record();
  record.destroying = true;
  if (auto written = write(vm, record); !written) return written;
  const auto qemu = vm.qemu();
  const auto session = vm.session();
  if (qemu != nullptr && qemu->running()) {
    if (session != nullptr) {
      session->drain();
      if (session->power_off()) (void)qemu->wait(config_.stop.power_off);
    }
    if (auto stopped = stop_qemu(*qemu, paths_.vm(record.uid), config_.stop); !stopped) {
      return stopped;
    }
  }
  settle_end(vm);
  if (auto kept = receipts_.keep(vm.record()); !kept) return kept;
  return remove_folder(record.uid);
}

// What its QEMU's end means for a VM, whoever notices first.
void VmKeeper::settle_end(Vm& vm) {
  vm.end_once([&] {
    const auto qemu = vm.qemu();
    std::optional<ExitStatus> status;
    if (qemu != nullptr) {
      if (auto ended = qemu->wait(std::chrono::seconds(1)); ended && qemu->is_child()) {
        status = *ended;
      }
    }
    if (const auto session = vm.session(); session != nullptr) session->end();
    VmRecord record = vm.record();
    if (record.state == VmState::ended) return;
    record.state = VmState::ended;
    record.ended_at = to_rfc3339(world_.clock.wall());
    record.reason =
        record.destroying ? "it was destroyed" : describe_end(paths_.vm(record.uid), status);
    if (auto written = write(vm, record); !written) {
      // In memory it is right, and the next start finds out by itself.
      vm.set_record(record);
      world_.log.error("cannot write down that a vm has ended",
                       {{"vm", record.vm_id}, {"reason", written.error().message}});
    }
    if (!record.destroying) {
      world_.log.warning("a vm has ended", {{"vm", record.vm_id}, {"reason", record.reason}});
    }
    world_.on_end();
  });
}

// Renamed first: a folder whose removal is interrupted is known by its name.
Result<void> VmKeeper::remove_folder(const std::string& uid) {
  const fs::path gone = paths_.removed_vm(uid);
  if (::rename(paths_.vm(uid).c_str(), gone.c_str()) < 0 && errno != ENOENT) {
    return errno_error(cat("rename ", paths_.vm(uid).native()), errno);
  }
  if (auto synced = sync_dir(paths_.vms()); !synced) return synced;
  return world_.host.remove_all(gone);
}

void VmKeeper::tidy() {
  receipts_.prune();
  for (const auto& vm : table_.all()) {
    // QEMU appends, so that it goes on at the new end.
    const fs::path console = paths_.vm(vm->record().uid, vm_file::serial_log);
    struct stat info {};
    if (::stat(console.c_str(), &info) < 0) continue;
    if (static_cast<std::uint64_t>(info.st_size) <= config_.most_console_bytes) continue;
    if (::truncate(console.c_str(), 0) < 0) {
      world_.log.warning("cannot cut a console's log short", {{"vm", vm->record().vm_id}});
    }
  }
}

}  // namespace fuse
