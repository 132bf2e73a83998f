#include "hostmode/qemu_argv.h"

#include <utility>

#include "base/ids.h"
#include "base/text.h"
#include "guest/channel/names.h"

namespace fuse {

namespace {

class Argv {
 public:
  explicit Argv(std::string program) : words_{std::move(program)} {}

  void flag(std::string_view option) { words_.emplace_back(option); }
  void add(std::string_view option, std::string value) {
    words_.emplace_back(option);
    words_.push_back(std::move(value));
  }
  std::vector<std::string> take() { return std::move(words_); }

 private:
  std::vector<std::string> words_;
};

std::string kernel_command_line(const VmRecord& vm) {
  // Its ciphers need no test at every boot: under emulation a fifth of it.
  std::string line = "console=ttyS0 quiet panic=-1 cryptomgr.notests";
  // The kernel counts ticks to see whether the timer works, and gives up where a
  // busy host has given an emulated CPU too little time for them.
  if (vm.accel == Accel::tcg) line += " no_timer_check";
  line += cat(" fuse.host=", guest_host_name(vm.vm_id), " fuse.net=", to_string(vm.net));
  if (vm.image.has_root) line += " fuse.root=/dev/vda";
  if (!vm.image.init.empty()) line += cat(" fuse.init=", vm.image.init);
  return line;
}

// The guest's memory as objects bound to nodes of the host; more than one are nodes of
// the guest's own.
void add_memory(Argv& argv, const MemoryPlan& plan) {
  for (std::size_t i = 0; i < plan.shares.size(); ++i) {
    const MemoryShare& share = plan.shares[i];
    const bool huge = share.page_kib > 0;
    std::string object = cat(huge ? "memory-backend-memfd" : "memory-backend-ram", ",id=ram", i,
                             ",size=", share.memory_mb, "M");
    if (huge) object += cat(",hugetlb=on,hugetlbsize=", share.page_kib, "K,prealloc=on");
    if (share.node) object += cat(",host-nodes=", *share.node, ",policy=bind");
    argv.add("-object", std::move(object));
  }
  if (plan.shares.size() < 2) return;
  for (std::size_t i = 0; i < plan.shares.size(); ++i) {
    const MemoryShare& share = plan.shares[i];
    argv.add("-numa", cat("node,nodeid=", i, ",memdev=ram", i, ",cpus=", share.first_cpu, "-",
                          share.first_cpu + share.cpus - 1));
  }
}

// Regions of 64 GiB and more do not fit into what a CPU of 40 bits can address.
std::string cpu_model(const VmRecord& vm, const QemuFacts& facts) {
  if (vm.accel == Accel::tcg) return "max";
  return facts.mmio_gib == 0 ? "host" : "host,host-phys-bits=on";
}

void add_machine(Argv& argv, const VmRecord& vm, const QemuFacts& facts) {
  argv.add("-name", cat("guest=", qemu_escaped(vm.vm_id)));
  argv.add("-uuid", ulid_to_uuid(vm.uid));
  const bool one_share = facts.memory.shares.size() == 1;
  argv.add("-machine",
           cat("q35,accel=", to_string(vm.accel), one_share ? ",memory-backend=ram0" : ""));
  argv.add("-cpu", cpu_model(vm, facts));
  argv.add("-smp", cat(vm.cpus));
  argv.add("-m", cat(vm.memory_mb, "M"));
  add_memory(argv, facts.memory);
  if (facts.mmio_gib > 0) {
    argv.add("-global", cat("q35-pcihost.pci-hole64-size=", facts.mmio_gib, "G"));
  }
  argv.flag("-nodefaults");
  argv.flag("-no-user-config");
  argv.add("-display", "none");
  // A guest that reboots or panics ends: a job runs once.
  argv.flag("-no-reboot");
  if (facts.user) argv.add("-runas", cat(facts.user->uid, ":", facts.user->gid));
  if (facts.sandbox) {
    // The sandbox is up before it changes its user, which any value but this forbids.
    // Afterwards there is nothing to elevate with: it may not start a program.
    const std::string_view privileges = facts.user ? "allow" : "deny";
    argv.add("-sandbox", cat("on,obsolete=deny,elevateprivileges=", privileges,
                             ",spawn=deny,resourcecontrol=deny"));
  }
}

// A disk's own boot loader is started by firmware, which has its variables in the VM's
// folder; cloud-init looks for its disk where the serial number tells it to.
void add_firmware(Argv& argv, const QemuFacts& facts) {
  argv.add("-drive",
           cat("if=pflash,unit=0,format=raw,readonly=on,file=", qemu_escaped(facts.firmware_code)));
  argv.add("-drive", cat("if=pflash,unit=1,format=raw,file=", vm_file::firmware_vars));
  argv.add("-smbios", "type=1,serial=ds=nocloud");
  if (facts.mmio_gib > 0) {
    argv.add("-fw_cfg", cat("name=opt/ovmf/X-PciMmio64Mb,string=", facts.mmio_gib * 1024));
  }
}

void add_boot(Argv& argv, const VmRecord& vm, const QemuFacts& facts) {
  if (boots_by_firmware(vm.image)) return add_firmware(argv, facts);
  argv.add("-kernel", vm.image.kernel);
  if (!vm.image.initrd.empty()) argv.add("-initrd", vm.image.initrd);
  argv.add("-append", kernel_command_line(vm));
}

void add_channels(Argv& argv) {
  argv.add("-chardev", cat("socket,id=qmp,path=", vm_file::qmp_socket, ",server=on,wait=off"));
  argv.add("-mon", "chardev=qmp,mode=control");
  // Opened for appending, so that it can be cut short while QEMU writes to it.
  argv.add("-chardev", cat("file,id=serial,path=", vm_file::serial_log, ",append=on"));
  argv.add("-serial", "chardev:serial");
  argv.add("-device", "virtio-serial-pci,id=vserial");
  argv.add("-chardev",
           cat("socket,id=agent,path=", vm_file::channel_socket, ",server=on,wait=off"));
  argv.add("-device", cat("virtserialport,bus=vserial.0,chardev=agent,name=", guest_port_name));
}

void add_devices(Argv& argv, const VmRecord& vm) {
  const bool firmware = boots_by_firmware(vm.image);
  argv.add("-object", "rng-random,id=rng0,filename=/dev/urandom");
  argv.add("-device", "virtio-rng-pci,rng=rng0");
  if (!vm.image.disk.empty()) {
    argv.add("-drive", cat("id=disk0,if=none,format=qcow2,discard=unmap,detect-zeroes=unmap,file=",
                           vm_file::disk));
    argv.add("-device", cat("virtio-blk-pci,drive=disk0", firmware ? ",bootindex=0" : ""));
  }
  if (firmware) {
    argv.add("-drive", cat("id=seed,if=none,format=raw,readonly=on,file=", vm_file::seed));
    argv.add("-device", "virtio-blk-pci,drive=seed");
  }
  if (vm.net == NetMode::user) {
    argv.add("-netdev", cat("user,id=", net_id, ",restrict=off"));
    argv.add("-device", cat("virtio-net-pci,netdev=", net_id, ",romfile="));
  }
}

// The address of a function within its slot: "0000:41:00.1" -> "0.1".
std::string function_place(const std::string& address) {
  const std::size_t dot = address.rfind('.');
  return cat("0.", dot == std::string::npos ? "0" : address.substr(dot + 1));
}

// Each slot of the host behind a port of its own, with its functions where they are on
// the host: firmware gives large regions only to what is behind a port, and drivers
// look for a card's companions beside it.
void add_passed_through(Argv& argv, const VmRecord& vm) {
  std::string slot;
  int ports = 0;
  for (const VmDevice& device : vm.devices) {
    const std::string own = device.address.substr(0, device.address.rfind('.'));
    if (device.kind != "pci" || own != slot) {
      argv.add("-device", cat("pcie-root-port,id=gpu", ports, ",chassis=", ports + 1));
      ++ports;
      slot = device.kind == "pci" ? own : "";
    }
    const std::string bus = cat(",bus=gpu", ports - 1);
    if (device.kind == "mdev") {
      argv.add("-device",
               cat("vfio-pci,sysfsdev=/sys/bus/mdev/devices/", qemu_escaped(device.address), bus));
    } else if (device.kind == "vf") {
      argv.add("-device", cat("vfio-pci,host=", qemu_escaped(device.address), bus));
    } else {
      argv.add("-device", cat("vfio-pci,host=", qemu_escaped(device.address), bus,
                              ",addr=", function_place(device.address), ",multifunction=on"));
    }
  }
}

}  // namespace

std::string qemu_escaped(std::string_view value) {
  std::string out;
  for (const char c : value) out.append(c == ',' ? 2U : 1U, c);
  return out;
}

std::vector<std::string> qemu_argv(const VmRecord& vm, const QemuFacts& facts) {
  Argv argv(facts.qemu);
  add_machine(argv, vm, facts);
  add_boot(argv, vm, facts);
  add_channels(argv);
  add_devices(argv, vm);
  add_passed_through(argv, vm);
  return argv.take();
}

}  // namespace fuse
