#include <algorithm>
#include <utility>

#include "base/ids.h"
#include "base/text.h"
#include "hostmode/job_book.h"
#include "hostmode/qmp_client.h"
#include "hostmode/user_net.h"
#include "hostmode/vm_keeper.h"

namespace fuse {

namespace {

// Whether a folder without a record holds nothing but what a creation leaves that
// was interrupted before its record was there.
bool only_beginnings(const std::vector<std::string>& names) {
  return std::ranges::all_of(names, [](const std::string& name) {
    return name.starts_with(cat(vm_file::record, ".new-"));
  });
}

}  // namespace

VmKeeper::VmKeeper(AgentWorld world, AgentConfig config)
    : world_(std::move(world)),
      config_(std::move(config)),
      paths_(config_.state_dir),
      quarantine_(world_.host, world_.clock, paths_.quarantine()),
      receipts_(world_.host, world_.clock, world_.log, paths_, config_.receipts) {}

VmKeeper::~VmKeeper() = default;

Result<void> VmKeeper::recover() {
  for (std::string* program : {&config_.qemu, &config_.qemu_img}) {
    // Looked up once: what is started later is what was found now.
    if (const auto found = find_program(*program, config_.path)) *program = found->native();
  }
  auto boot_id = read_boot_id(world_.host);
  if (!boot_id) return boot_id.error();
  boot_id_ = std::move(boot_id).value();
  auto taken = StateDir::take(world_.host, paths_);
  if (!taken) return taken.error();
  state_dir_.emplace(std::move(taken).value());
  if (auto loaded = receipts_.load(); !loaded) return loaded;
  if (auto cleared = quarantine_.clear(); !cleared) return cleared;
  if (auto cleared = clear_probes(); !cleared) return cleared;
  const auto names = world_.host.list_dir(paths_.vms());
  if (!names) return names.error();
  for (const std::string& name : *names) {
    const auto recovered = recover_folder(name);
    if (recovered) continue;
    world_.log.error("a vm is set aside: look at its folder",
                     {{"uid", name}, {"reason", recovered.error().message}});
    if (auto noted = quarantine_.add(name, recovered.error()); !noted) return noted;
  }
  end_homeless();
  receipts_.prune();
  return {};
}

// An error is the reason to leave the folder alone.
Result<void> VmKeeper::recover_folder(const std::string& name) {
  if (name.starts_with(StatePaths::removed_prefix)) {
    return world_.host.remove_all(paths_.vms() / name);
  }
  if (!is_uid(name)) return Error{ErrorCode::internal, "its name is not a uid"};
  const auto record = read_vm_record(world_.host, paths_, name);
  if (record) return recover_vm(*record);
  if (record.error().code != ErrorCode::not_found) return record.error();
  const auto inside = world_.host.list_dir(paths_.vm(name));
  if (!inside) return inside.error();
  if (only_beginnings(*inside)) return remove_folder(name);
  return Error{ErrorCode::internal, cat("it has no record, but holds ", join(*inside, ", "))};
}

Result<void> VmKeeper::recover_vm(const VmRecord& record) {
  if (record.destroying) return finish_destruction(record);
  switch (record.state) {
    case VmState::creating:
      return undo_creation(record);
    case VmState::running:
      return recover_running(record);
    case VmState::ended:
      break;
  }
  return recover_ended(record);
}

Result<void> VmKeeper::undo_creation(const VmRecord& record) {
  if (auto ended = end_any_qemu(record.uid); !ended) return ended;
  VmRecord last = record;
  if (auto released = release(last); !released) return released;
  world_.log.info("a vm that was being created is removed", {{"vm", record.vm_id}});
  return remove_folder(record.uid);
}

// Ends the QEMU of a uid, also one whose start was not written down any more.
Result<void> VmKeeper::end_any_qemu(const std::string& uid) {
  auto qemu = find_qemu(world_.host, uid);
  if (!qemu) {
    if (qemu.error().code == ErrorCode::not_found) return {};
    return qemu.error();
  }
  return stop_qemu(**qemu, paths_.vm(uid), config_.stop);
}

// VMs whose folders were removed while no agent was there: nothing is known of
// them any more but that they are ours.
void VmKeeper::end_homeless() {
  const auto uids = find_homeless(world_.host, paths_.vms());
  if (!uids) {
    world_.log.error("cannot look for vms without a folder", {{"reason", uids.error().message}});
    return;
  }
  for (const std::string& uid : *uids) {
    world_.log.warning("a vm whose folder was removed is ended", {{"uid", uid}});
    if (auto ended = end_any_qemu(uid); !ended) {
      world_.log.error("cannot end a vm", {{"uid", uid}, {"reason", ended.error().message}});
    }
  }
}

Result<void> VmKeeper::recover_running(VmRecord record) {
  auto qemu = adopt_qemu(record.process, boot_id_);
  if (!qemu) {
    if (qemu.error().code != ErrorCode::not_found) return qemu.error();
    record.state = VmState::ended;
    record.ended_at = to_rfc3339(world_.clock.wall());
    record.reason = record.process.boot_id == boot_id_
                        ? describe_end(paths_.vm(record.uid), std::nullopt)
                        : "the host was restarted";
    return recover_ended(std::move(record));
  }
  auto qmp = QmpClient::connect(paths_.vm(record.uid), {});
  const auto uuid = qmp ? query_uuid(*qmp) : Result<std::string>(qmp.error());
  if (!uuid) {
    // A QEMU that is about to end closes its sockets a moment before it is gone.
    const auto ended = (*qemu)->wait(std::chrono::seconds(3));
    if (ended && *ended) return recover_running(std::move(record));
    return in_context(cat("process ", record.process.pid, " runs"), uuid.error());
  }
  if (*uuid != ulid_to_uuid(record.uid)) {
    return Error{ErrorCode::internal,
                 cat("process ", record.process.pid, " runs, but its monitor is that of ", *uuid)};
  }
  check_net(record, *qmp);
  const auto vm = table_.take_up(record, Vm::Phase::running);
  if (!vm) return vm.error();
  world_.log.info("a running vm is taken up", {{"vm", record.vm_id}, {"uid", record.uid}});
  return begin_session(**vm, {.qemu = std::move(qemu).value(), .guest = nullptr});
}

Result<void> VmKeeper::recover_ended(VmRecord record) {
  if (auto lost = lose_job(world_.host, paths_.vm(record.uid)); !lost) return lost;
  if (auto released = release(record); !released) {
    world_.log.error("a vm that has ended keeps its devices",
                     {{"vm", record.vm_id}, {"reason", released.error().message}});
  }
  if (auto written = write_vm_record(world_.host, paths_, record); !written) return written;
  const auto vm = table_.take_up(record, Vm::Phase::ended);
  if (!vm) return vm.error();
  world_.log.info("a vm has ended", {{"vm", record.vm_id}, {"reason", record.reason}});
  return {};
}

Result<void> VmKeeper::finish_destruction(const VmRecord& record) {
  if (auto ended = end_any_qemu(record.uid); !ended) return ended;
  if (auto lost = lose_job(world_.host, paths_.vm(record.uid)); !lost) return lost;
  VmRecord last = record;
  if (last.state != VmState::ended) {
    last.state = VmState::ended;
    last.ended_at = to_rfc3339(world_.clock.wall());
    last.reason = "it was destroyed";
  }
  if (auto released = release(last); !released) return released;
  if (auto kept = receipts_.keep(last); !kept) return kept;
  world_.log.info("the destruction of a vm is finished", {{"vm", record.vm_id}});
  return remove_folder(record.uid);
}

Result<void> VmKeeper::clear_probes() {
  const auto names = world_.host.list_dir(paths_.probes());
  if (!names) {
    if (names.error().code == ErrorCode::not_found) return {};
    return names.error();
  }
  for (const std::string& name : *names) {
    if (is_uid(name)) {
      auto qemu = find_qemu(world_.host, name);
      if (qemu) {
        if (auto ended = stop_qemu(**qemu, paths_.probes() / name, config_.stop); !ended) {
          return ended;
        }
      }
    }
    if (auto removed = world_.host.remove_all(paths_.probes() / name); !removed) return removed;
  }
  return {};
}

// QEMU keeps its forwards through our restart; net.json must say no more than that.
void VmKeeper::check_net(const VmRecord& record, QmpClient& qmp) {
  const fs::path file = paths_.vm(record.uid, vm_file::net);
  const auto text = world_.host.read_file(file);
  if (!text) return;
  auto endpoints = parse_net(*text);
  const auto usernet = qmp.human("info usernet");
  if (!endpoints || !usernet) return;
  const auto forwards = parse_usernet(*usernet);
  std::erase_if(endpoints.value(), [&](const Endpoint& endpoint) {
    const HostForward forward{endpoint.host_port, endpoint.port};
    return std::ranges::find(forwards, forward) == forwards.end();
  });
  const std::string checked = net_text(*endpoints);
  if (checked == *text) return;
  world_.log.warning("ports of a vm are no longer forwarded", {{"vm", record.vm_id}});
  if (auto written = world_.host.replace_file(file, checked, 0600); !written) {
    world_.log.error("cannot write down the ports of a vm",
                     {{"vm", record.vm_id}, {"reason", written.error().message}});
  }
}

}  // namespace fuse
