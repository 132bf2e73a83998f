#include <unistd.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/ids.h"
#include "base/text.h"
#include "hostmode/cloud_seed.h"
#include "hostmode/device_pool.h"
#include "hostmode/disk.h"
#include "hostmode/mmio_window.h"
#include "hostmode/qemu_argv.h"
#include "hostmode/vm_keeper.h"

namespace fuse {

namespace {

Result<void> check_request(const CreateVmRequest& request) {
  const auto wrong = [](std::string message) {
    return Error{ErrorCode::invalid_argument, std::move(message)};
  };
  if (!request.uid.empty() && !is_uid(request.uid)) {
    return wrong(cat("uid \"", request.uid, "\" is not a ULID"));
  }
  for (const auto& [name, value] : {std::pair("cpus", request.cpus),
                                    {"memory_mb", request.memory_mb},
                                    {"storage_gb", request.storage_gb},
                                    {"gpus", request.gpus}}) {
    if (value < 0) return wrong(cat(name, " must not be negative"));
  }
  return {};
}

BootImage boot_image(const Image& image) {
  return {.name = image.name,
          .kernel = image.kernel.native(),
          .initrd = image.initrd.native(),
          .disk = image.disk ? image.disk->native() : "",
          .has_root = image.has_root,
          .init = image.init};
}

// Why a guest that boots by itself may stay silent, for its owner to find out.
std::string silence_hint(const BootImage& image) {
  if (!boots_by_firmware(image)) return "";
  return cat("image '", image.name,
             "' boots by its own boot loader, and its cloud-init starts the agent from the disk "
             "labelled cidata: whether it saw that disk is in the guest's "
             "/run/cloud-init/ds-identify.log");
}

// A VM with devices has all its memory locked and their regions mapped before its guest
// starts, which takes a second or so a GiB, and on some kernels minutes a card.
std::chrono::milliseconds boot_time(const AgentConfig& config, const VmRecord& record) {
  const auto plain =
      boots_by_firmware(record.image) ? config.firmware_boot_budget : config.boot_budget;
  if (record.devices.empty()) return plain;
  const std::chrono::seconds locking(record.memory_mb / 1024);
  const std::chrono::seconds mapping(30 * record.devices.size());
  return plain + locking + mapping;
}

}  // namespace

Result<VmRecord> VmKeeper::record_of(const CreateVmRequest& request) const {
  if (auto fits = check_request(request); !fits) return fits.error();
  const auto image = world_.resolve_image(request.image);
  if (!image) return image.error();
  const WallTime now = world_.clock.wall();
  return VmRecord{
      .uid = request.uid.empty() ? new_ulid(now) : request.uid,
      .vm_id = request.name.empty() ? cat("vm-", random_hex(4)) : vm_id_of(request.name),
      .name = request.name,
      .cluster = request.cluster,
      .idempotency_key = request.idempotency_key,
      .region = request.region,
      .image = boot_image(*image),
      .cpus = std::max(1, request.cpus),
      .memory_mb = request.memory_mb == 0 ? 1024 : request.memory_mb,
      .storage_gb = request.storage_gb,
      .net = config_.net,
      .created_at = to_rfc3339(now),
  };
}

// One at a time, and in the VM's record before the next one looks.
Result<void> VmKeeper::allocate(const CreateVmRequest& request, Vm& vm, VmRecord& record) {
  const bool asks = request.gpus > 0 || !request.gpu_profile.empty() ||
                    !request.gpu_device_uuids.empty() || !request.mig_instance_uuids.empty();
  if (!asks) return {};
  const std::scoped_lock lock(allocation_mutex_);
  const auto pool = read_device_pool(world_.host, config_.devices, InventoryDepth::use);
  if (!pool) return pool.error();
  std::set<std::string> taken;
  for (const auto& other : table_.all()) {
    const VmRecord has = other->record();
    if (has.release) continue;
    for (const VmDevice& device : has.devices) {
      taken.insert(device.kind == "pci" ? device.address : device.uuid);
    }
  }
  auto devices = allocate_devices(request, *pool, taken);
  if (!devices) return devices.error();
  record.devices = std::move(*devices);
  vm.set_record(record);
  return {};
}

Result<VmInfo> VmKeeper::create(const CreateVmRequest& request) {
  auto record = record_of(request);
  if (!record) return record.error();
  if (quarantine_.find(record->uid)) {
    return Error{ErrorCode::conflict, cat("uid ", record->uid, " is quarantined")};
  }
  const auto place = table_.reserve(*record);
  if (!place) return place.error();
  const std::shared_ptr<Vm> vm = place->vm;
  if (!place->fresh) {
    if (auto created = vm->await_created(); !created) return created.error();
    return vm->info();
  }
  if (auto built = build(*vm, request); !built) {
    if (auto released = take_back(*vm); !released) {
      // Nor are they anybody else's while the name is taken.
      world_.log.error("a vm that failed keeps its devices",
                       {{"vm", record->vm_id}, {"reason", released.error().message}});
      vm->fail(built.error());
      return built.error();
    }
    // The name is free again only when nothing is left behind.
    if (auto removed = remove_folder(record->uid); !removed) {
      world_.log.error("cannot remove what is left of a vm that failed",
                       {{"vm", record->vm_id}, {"reason", removed.error().message}});
    }
    table_.remove(record->uid);
    vm->fail(built.error());
    return built.error();
  }
  world_.log.info("a vm is up", {{"vm", record->vm_id}, {"uid", record->uid}});
  return vm->info();
}

// Said before anything is made: no VM can do without them.
Result<void> VmKeeper::check_programs() const {
  for (const auto& [program, package] :
       {std::pair(config_.qemu, "qemu-system-x86"), {config_.qemu_img, "qemu-utils"}}) {
    const auto found = find_program(program, config_.path);
    if (found && ::access(found->c_str(), X_OK) == 0) continue;
    return Error{ErrorCode::internal,
                 cat(program, " is not on this host: install QEMU (Debian: ", package, ")")};
  }
  return {};
}

Result<void> VmKeeper::build(Vm& vm, const CreateVmRequest& request) {
  VmRecord record = vm.record();
  if (auto allocated = allocate(request, vm, record); !allocated) return allocated;
  if (auto there = check_programs(); !there) return there;
  std::optional<Firmware> firmware;
  if (boots_by_firmware(record.image)) {
    auto found = find_firmware(world_.host, config_.ovmf_code);
    if (!found)
      return in_context(cat("image '", record.image.name, "' boots by firmware"), found.error());
    firmware = *std::move(found);
  }
  const auto choice = accel();
  if (!choice) return choice.error();
  record.accel = choice->accel;

  const fs::path dir = paths_.vm(record.uid);
  if (auto made = world_.host.make_dirs(dir, 0700); !made) return made;
  // From here on a restart finds it and removes it.
  if (auto written = write(vm, record); !written) return written;
  if (!record.image.disk.empty()) {
    const auto image = world_.resolve_image(request.image);
    if (!image) return image.error();
    const auto bytes = overlay_bytes(record.storage_gb, image->disk_bytes);
    auto made = create_overlay(
        world_.host, overlay_argv(config_.qemu_img, record.image.disk, dir / vm_file::disk, bytes));
    if (!made) return made;
  }
  auto facts = qemu_facts(record);
  if (!facts) return facts.error();
  if (firmware) {
    facts->firmware_code = firmware->code;
    if (auto made = make_firmware_files(record, *firmware); !made) return made;
  }
  record.argv = qemu_argv(record, *facts);
  if (auto written = write(vm, record); !written) return written;
  return boot(vm, std::move(record));
}

// What a VM that boots by firmware has besides its disk.
Result<void> VmKeeper::make_firmware_files(const VmRecord& record, const Firmware& firmware) const {
  const fs::path dir = paths_.vm(record.uid);
  const auto vars = world_.host.read_file(firmware.vars);
  if (!vars) return vars.error();
  auto made = world_.host.replace_file(dir / vm_file::firmware_vars, *vars, 0600);
  if (!made) return made;
  const auto program = world_.host.read_file(config_.guest_program);
  if (!program) return program.error();
  return world_.host.replace_file(dir / vm_file::seed, cloud_seed_disk(record, *program), 0400);
}

// What the host has to say about a VM with devices: where its memory is to be, how large
// their regions are, and that all of it may be locked.
Result<QemuFacts> VmKeeper::qemu_facts(const VmRecord& record) {
  auto user = find_qemu_user(world_.host, config_.qemu_user, ::geteuid());
  if (!user) return user.error();
  QemuFacts facts{.qemu = config_.qemu, .user = *std::move(user)};
  if (record.devices.empty()) return facts;
  auto allowed = world_.allow_locking(bytes_to_lock(record.memory_mb));
  if (!allowed) return allowed.error();
  std::vector<std::optional<std::int32_t>> nodes;
  std::map<std::string, std::vector<PciBar>> bars;
  for (const VmDevice& device : record.devices) {
    if (device.kind == "mdev") continue;
    auto function = read_pci_device(world_.host, device.address);
    if (!function) continue;
    nodes.push_back(function->numa);
    bars[device.address] = std::move(function->bars);
  }
  // An emulated CPU has 40 bits, whatever this one has.
  const auto cpuinfo = world_.host.read_file("/proc/cpuinfo");
  const int bits = record.accel == Accel::tcg ? 40 : physical_bits(cpuinfo ? *cpuinfo : "");
  facts.mmio_gib = window_within(mmio_window_gib(bars), record.memory_mb, bits);
  facts.memory = plan_memory(record.memory_mb, record.cpus, nodes, read_host_nodes(world_.host));
  if (!facts.memory.note.empty()) {
    world_.log.warning("a vm's memory is not where its devices are",
                       {{"vm", record.vm_id}, {"reason", facts.memory.note}});
  }
  return facts;
}

Result<void> VmKeeper::boot(Vm& vm, VmRecord record) {
  const auto note_process = [&](const QemuProcess& qemu) {
    record.process = {qemu.pid(), qemu.start_time(), boot_id_};
    return write(vm, record);
  };
  if (!record.devices.empty()) {
    world_.log.info("the memory of a vm is locked for its devices",
                    {{"vm", record.vm_id}, {"memory_mb", cat(record.memory_mb)}});
  }
  auto booted = boot_vm(world_.host,
                        {.dir = paths_.vm(record.uid),
                         .argv = record.argv,
                         .budget = boot_time(config_, record),
                         .hint = silence_hint(record.image),
                         .on_start = note_process},
                        config_.stop, vm.cancelled());
  if (!booted) return in_context(cat("start vm ", record.vm_id), booted.error());
  record.state = VmState::running;
  const std::shared_ptr<QemuProcess> qemu = booted->qemu;
  auto begun = write(vm, record);
  if (begun) begun = begin_session(vm, std::move(booted).value());
  if (!begun) {
    if (auto stopped = stop_qemu(*qemu, paths_.vm(record.uid), config_.stop); !stopped) {
      return stopped;
    }
  }
  return begun;
}

Result<void> VmKeeper::begin_session(Vm& vm, BootedVm booted) {
  auto session = VmSession::open({.host = world_.host,
                                  .clock = world_.clock,
                                  .log = world_.log,
                                  .limits = config_.session,
                                  .on_result = world_.on_end},
                                 paths_.vm(vm.record().uid), std::move(booted.guest));
  if (!session) return session.error();
  vm.run(booted.qemu, std::move(session).value());
  auto watch = QemuWatch::begin(booted.qemu, {.interval = config_.look_interval,
                                              .on_look = [this, &vm] { look_after(vm); },
                                              .on_exit = [this, &vm] { settle_end(vm); }});
  if (!watch) return watch.error();
  vm.watch(std::move(watch).value());
  return {};
}

Result<AccelChoice> VmKeeper::accel() {
  const std::scoped_lock lock(accel_mutex_);
  if (accel_) return *accel_;
  std::optional<Error> objection;
  KvmSubject subject;
  Image image;
  if (config_.accel != AccelPolicy::tcg) objection = kvm_objection(config_.kvm_device);
  if (config_.accel == AccelPolicy::automatic && !objection) {
    const auto found = world_.resolve_image(config_.kvm_trial_image);
    if (found) image = *found;
    if (!found) objection = in_context("there is no image to try it with", found.error());
    if (found && found->kernel.empty()) {
      objection = Error{ErrorCode::unavailable,
                        cat("image '", found->name, "', to try it with, has no kernel")};
    }
    const auto read = read_kvm_subject(world_.host, config_.qemu);
    if (read) subject = *read;
    if (!read) objection = read.error();
  }
  AccelChooser chooser(world_.host, world_.log, paths_.accel());
  auto choice = chooser.choose(config_.accel, objection, subject, [&] { return try_kvm(image); });
  if (!choice) return choice;
  world_.log.info("how vms are run",
                  {{"accel", std::string(to_string(choice->accel))}, {"reason", choice->reason}});
  accel_ = *choice;
  return choice;
}

Result<void> VmKeeper::try_kvm(const Image& image) {
  VmRecord record{.uid = new_ulid(world_.clock.wall()),
                  .vm_id = "kvm-trial",
                  .image = boot_image(image),
                  .memory_mb = 512,
                  .accel = Accel::kvm,
                  .net = NetMode::none};
  record.image.disk.clear();
  const fs::path dir = paths_.probes() / record.uid;
  if (auto made = world_.host.make_dirs(dir, 0700); !made) return made;
  auto booted = boot_vm(world_.host,
                        {.dir = dir,
                         .argv = qemu_argv(record, {.qemu = config_.qemu}),
                         .budget = config_.kvm_trial_budget,
                         .hint = "",
                         .on_start = {}},
                        config_.stop, {});
  Result<void> ended;
  if (booted) {
    booted->guest->close();
    ended = stop_qemu(*booted->qemu, dir, config_.stop);
  }
  auto removed = world_.host.remove_all(dir);
  if (!booted) return booted.error();
  if (!ended) return ended;
  return removed;
}

}  // namespace fuse
