#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <utility>

#include "base/files.h"
#include "base/text.h"
#include "hostmode/job_book.h"
#include "hostmode/vm_keeper.h"

namespace fuse {

namespace {

std::uint64_t free_bytes(const fs::path& dir) {
  struct statvfs space {};
  if (::statvfs(dir.c_str(), &space) < 0) return 0;
  return std::uint64_t{space.f_bavail} * space.f_frsize;
}

Error not_found() {
  return {ErrorCode::not_found, "vm not found"};
}

Error is_set_aside(const QuarantinedVm& vm) {
  return {ErrorCode::unavailable, cat("vm ", vm.uid, " is set aside: ", vm.reason)};
}

}  // namespace

Result<void> VmKeeper::write(Vm& vm, const VmRecord& record) {
  if (auto written = write_vm_record(world_.host, paths_, record); !written) return written;
  vm.set_record(record);
  return {};
}

Result<std::shared_ptr<Vm>> VmKeeper::find(const std::string& id) {
  const std::shared_ptr<Vm> vm = table_.find(id);
  if (vm != nullptr && vm->await_created()) return vm;
  if (const auto held = quarantine_.find(id)) return is_set_aside(*held);
  return not_found();
}

Result<void> VmKeeper::destroy(const std::string& id) {
  const std::shared_ptr<Vm> vm = table_.find(id);
  if (vm == nullptr) return destroy_unknown(id);
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

// What is not in the table may lie there set aside, or run though its folder is
// gone.
Result<void> VmKeeper::destroy_unknown(const std::string& id) {
  if (!is_uid(id)) return not_found();
  if (const auto held = quarantine_.find(id)) return destroy_set_aside(*held);
  auto qemu = find_qemu(world_.host, id);
  if (!qemu) return qemu.error().code == ErrorCode::not_found ? not_found() : qemu.error();
  world_.log.warning("a vm without a record is ended", {{"uid", id}, {"pid", cat((*qemu)->pid())}});
  return stop_qemu(**qemu, paths_.vm(id), config_.stop);
}

Result<void> VmKeeper::destroy_set_aside(const QuarantinedVm& vm) {
  if (vm.newer) return is_set_aside(vm);
  if (auto ended = end_any_qemu(vm.uid); !ended) return ended;
  if (auto lost = lose_job(world_.host, paths_.vm(vm.uid)); !lost) {
    world_.log.warning("what is known of a job cannot be read",
                       {{"uid", vm.uid}, {"reason", lost.error().message}});
  }
  const VmRecord record{.uid = vm.uid,
                        .vm_id = vm_id_of(""),
                        .ended_at = to_rfc3339(world_.clock.wall()),
                        .state = VmState::ended,
                        .reason = vm.reason};
  if (auto kept = receipts_.keep(record); !kept) return kept;
  if (auto removed = remove_folder(vm.uid); !removed) return removed;
  world_.log.info("a vm that was set aside is gone", {{"uid", vm.uid}});
  return quarantine_.remove(vm.uid);
}

Result<void> VmKeeper::end_and_remove(Vm& vm) {
  const VmRecord record = vm.note_destroying();
  if (auto written = write_vm_record(world_.host, paths_, record); !written) {
    // The disk is full, or the folder gone.  Whoever asked will ask again should we
    // be interrupted.
    world_.log.warning("cannot write down that a vm is being destroyed",
                       {{"vm", record.vm_id}, {"reason", written.error().message}});
  }
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
  if (auto released = release(vm); !released) return released;
  // First what nobody needs any more: a full disk has no room for a receipt.
  for (const std::string_view name : {vm_file::disk, vm_file::firmware_vars, vm_file::seed,
                                      vm_file::serial_log, vm_file::qemu_log}) {
    const fs::path file = paths_.vm(record.uid, name);
    if (auto removed = world_.host.remove_all(file); !removed) return removed;
  }
  if (auto kept = receipts_.keep(vm.record()); !kept) return kept;
  return remove_folder(record.uid);
}

// A VM without its folder could not be found again, nor its job's result kept.
void VmKeeper::look_after(Vm& vm) {
  const auto qemu = vm.qemu();
  const VmRecord record = vm.record();
  const fs::path dir = paths_.vm(record.uid);
  if (qemu == nullptr) return;
  if (runs_in(*qemu, dir)) return let_go_on(record);
  const std::string reason = cat("its folder ", dir.native(), " was removed while it ran");
  world_.log.error("a vm is ended", {{"vm", record.vm_id}, {"reason", reason}});
  vm.doom(reason);
  if (auto stopped = stop_qemu(*qemu, dir, config_.stop); !stopped) {
    world_.log.error("cannot end a vm",
                     {{"vm", record.vm_id}, {"reason", stopped.error().message}});
  }
}

void VmKeeper::look_after_all() {
  for (const auto& vm : table_.all()) look_after(*vm);
}

// QEMU stops a VM whose disk cannot be written, and it waits until it is told that
// there is room again.
void VmKeeper::let_go_on(const VmRecord& record) {
  if (record.image.disk.empty()) return;
  const fs::path dir = paths_.vm(record.uid);
  constexpr std::chrono::milliseconds patience = std::chrono::seconds(2);
  auto qmp = QmpClient::connect(dir, {.greeting = patience, .answer = patience});
  if (!qmp) return;
  const auto status = query_status(*qmp);
  if (!status || *status != "io-error") return;
  constexpr std::uint64_t enough = 16U << 20U;
  if (free_bytes(dir) < enough) {
    world_.log.warning("a vm waits for room on the disk that holds its folder",
                       {{"vm", record.vm_id}, {"folder", dir.native()}});
    return;
  }
  if (auto told = qmp->execute("cont"); !told) {
    world_.log.error("cannot let a vm go on",
                     {{"vm", record.vm_id}, {"reason", told.error().message}});
    return;
  }
  world_.log.info("a vm goes on: there is room for its disk again", {{"vm", record.vm_id}});
}

// Puts what we know into a new folder in the place of one that was removed, so
// that it is also known after a restart.
Result<void> VmKeeper::replace_folder(const Vm& vm) const {
  const fs::path dir = paths_.vm(vm.record().uid);
  // Not when somebody has begun anew.
  if (!state_dir_->is_there(paths_)) return {};
  if (::mkdir(dir.c_str(), 0700) < 0) {
    if (errno == EEXIST) return {};
    return errno_error(cat("create folder ", dir.native()), errno);
  }
  const auto session = vm.session();
  return session != nullptr ? session->write_anew(dir) : Result<void>();
}

void VmKeeper::settle(Vm& vm) {
  const auto qemu = vm.qemu();
  if (qemu != nullptr && !qemu->running()) settle_end(vm);
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
    if (record.destroying) record.reason = "it was destroyed";
    if (record.reason.empty()) record.reason = describe_end(paths_.vm(record.uid), status);
    auto written = replace_folder(vm);
    if (written) written = write(vm, record);
    if (!written) {
      // In memory it is right, and the next start finds out by itself.
      vm.set_record(record);
      world_.log.error("cannot write down that a vm has ended",
                       {{"vm", record.vm_id}, {"reason", written.error().message}});
    }
    if (!record.destroying) {
      world_.log.warning("a vm has ended", {{"vm", record.vm_id}, {"reason", record.reason}});
    }
    if (auto released = release(vm); !released) {
      world_.log.error("a vm that has ended keeps its devices",
                       {{"vm", record.vm_id}, {"reason", released.error().message}});
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
