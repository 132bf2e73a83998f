#include "hostmode/qemu_argv.h"

#include <algorithm>
#include <chrono>

#include "base/ids.h"
#include "base/posix_host.h"
#include "base/text.h"
#include "hostmode/qemu_process.h"
#include "hostmode/qmp_client.h"
#include "tests/catch.h"
#include "tests/hostmode/sample_record.h"
#include "tests/hostmode/test_dir.h"

namespace fuse {
namespace {

using Argv = std::vector<std::string>;

const Argv whole = {
    "qemu-system-x86_64",
    "-name",
    "guest=fuse-train",
    "-uuid",
    "01563e3a-b5d3-d676-4c61-efb99302bd5b",
    "-machine",
    "q35,accel=kvm",
    "-cpu",
    "host",
    "-smp",
    "2",
    "-m",
    "2048M",
    "-nodefaults",
    "-no-user-config",
    "-display",
    "none",
    "-no-reboot",
    "-sandbox",
    "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny",
    "-kernel",
    "/images/kernel",
    "-initrd",
    "/images/initrd",
    "-append",
    "console=ttyS0 quiet panic=-1 cryptomgr.notests fuse.host=fuse-train fuse.net=user "
    "fuse.root=/dev/vda",
    "-chardev",
    "socket,id=qmp,path=qmp.sock,server=on,wait=off",
    "-mon",
    "chardev=qmp,mode=control",
    "-chardev",
    "file,id=serial,path=serial.log,append=on",
    "-serial",
    "chardev:serial",
    "-device",
    "virtio-serial-pci,id=vserial",
    "-chardev",
    "socket,id=agent,path=ch.sock,server=on,wait=off",
    "-device",
    "virtserialport,bus=vserial.0,chardev=agent,name=fuse.agent",
    "-object",
    "rng-random,id=rng0,filename=/dev/urandom",
    "-device",
    "virtio-rng-pci,rng=rng0",
    "-drive",
    "id=disk0,if=none,format=qcow2,discard=unmap,detect-zeroes=unmap,file=disk.qcow2",
    "-device",
    "virtio-blk-pci,drive=disk0",
    "-netdev",
    "user,id=net0,restrict=off",
    "-device",
    "virtio-net-pci,netdev=net0,romfile=",
};

std::string word_after(const Argv& argv, std::string_view option) {
  const auto at = std::ranges::find(argv, option);
  REQUIRE(at != argv.end());
  return *(at + 1);
}

TEST_CASE("the command line of a VM with a disk and a network") {
  CHECK(qemu_argv(sample_record(), {}) == whole);
}

TEST_CASE("without disk and network nothing of them is in the command line") {
  VmRecord vm = sample_record();
  vm.image = {
      .name = "micro", .kernel = "/k", .initrd = "/i", .disk = "", .has_root = false, .init = ""};
  vm.net = NetMode::none;
  vm.accel = Accel::tcg;

  const Argv argv = qemu_argv(vm, {.qemu = "/opt/qemu", .sandbox = false});

  CHECK(argv[0] == "/opt/qemu");
  CHECK(word_after(argv, "-machine") == "q35,accel=tcg");
  CHECK(word_after(argv, "-cpu") == "max");
  CHECK(word_after(argv, "-append") ==
        "console=ttyS0 quiet panic=-1 cryptomgr.notests no_timer_check fuse.host=fuse-train "
        "fuse.net=none");
  const std::string all = join(argv, " ");
  CHECK(all.find("disk0") == std::string::npos);
  CHECK(all.find("net0") == std::string::npos);
  CHECK(all.find("-sandbox") == std::string::npos);
}

TEST_CASE("devices are behind ports of their own, a card's functions together") {
  VmRecord vm = sample_record();
  vm.devices = {{.kind = "pci", .address = "0000:09:00.0", .uuid = "GPU-a", .group = "21"},
                {.kind = "pci", .address = "0000:09:00.1", .group = "21"},
                {.kind = "pci", .address = "0000:0a:00.0", .uuid = "GPU-b", .group = "22"},
                {.kind = "mdev", .address = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001", .uuid = "u"},
                {.kind = "vf", .address = "0000:26:00.4", .uuid = "v"},
                {.kind = "vf", .address = "0000:26:00.5", .uuid = "w"}};
  VmRecord none = vm;
  none.devices.clear();
  const Argv argv = qemu_argv(vm, {});
  const std::size_t before = qemu_argv(none, {}).size();
  CHECK(Argv(argv.begin() + static_cast<std::ptrdiff_t>(before), argv.end()) ==
        Argv{"-device",
             "pcie-root-port,id=gpu0,chassis=1",
             "-device",
             "vfio-pci,host=0000:09:00.0,bus=gpu0,addr=0.0,multifunction=on",
             "-device",
             "vfio-pci,host=0000:09:00.1,bus=gpu0,addr=0.1,multifunction=on",
             "-device",
             "pcie-root-port,id=gpu1,chassis=2",
             "-device",
             "vfio-pci,host=0000:0a:00.0,bus=gpu1,addr=0.0,multifunction=on",
             "-device",
             "pcie-root-port,id=gpu2,chassis=3",
             "-device",
             "vfio-pci,sysfsdev=/sys/bus/mdev/devices/83b8f4f2-509f-382f-3c1e-e6bfe0fa1001,"
             "bus=gpu2",
             "-device",
             "pcie-root-port,id=gpu3,chassis=4",
             "-device",
             "vfio-pci,host=0000:26:00.4,bus=gpu3",
             "-device",
             "pcie-root-port,id=gpu4,chassis=5",
             "-device",
             "vfio-pci,host=0000:26:00.5,bus=gpu4"});
}

TEST_CASE("a disk's own init is named to the guest") {
  VmRecord vm = sample_record();
  vm.image.init = "/sbin/init";
  CHECK(word_after(qemu_argv(vm, {}), "-append")
            .ends_with(" fuse.root=/dev/vda fuse.init=/sbin/init"));
}

TEST_CASE("a long name is cut to a host name that Linux takes") {
  VmRecord vm = sample_record();
  vm.vm_id = std::string(62, 'a') + "-" + std::string(20, 'b');
  CHECK(word_after(qemu_argv(vm, {}), "-append").find(cat("=", std::string(62, 'a'), " ")) !=
        std::string::npos);
  CHECK(word_after(qemu_argv(vm, {}), "-name") == cat("guest=", vm.vm_id));
}

TEST_CASE("commas are doubled for QEMU") {
  CHECK(qemu_escaped("a,b,,c") == "a,,b,,,,c");
  CHECK(qemu_escaped("plain") == "plain");
}

// What is compared above QEMU itself takes, up to the point where it would run
// the guest: it stands still and answers on its monitor.
TEST_CASE("QEMU accepts the command line") {
  const TestDir scratch;
  PosixHost host;
  // Any file is a kernel to a QEMU that only looks at its header.
  VmRecord vm = sample_record();
  vm.accel = Accel::tcg;
  vm.memory_mb = 128;
  vm.image.kernel = scratch.path() / "kernel,with comma";
  vm.image.initrd = scratch.path() / "initrd";
  std::string header(4096, '\0');
  header[0x1fe] = '\x55';
  header[0x1ff] = '\xaa';
  header.replace(0x202, 4, "HdrS");
  header[0x206] = '\x0f';
  header[0x207] = '\x02';
  header[0x211] = '\x01';
  header[0x22f] = '\x7f';  // initrd_addr_max
  write_text(vm.image.kernel, header);
  write_text(vm.image.initrd, "initrd");
  const fs::path dir = scratch.path() / std::string(90, 'd') / vm.uid;
  fs::create_directories(dir);
  REQUIRE(
      host.spawn({.argv = {"qemu-img", "create", "-q", "-f", "qcow2", dir / "disk.qcow2", "1M"}})
          .value()
          ->wait(std::chrono::seconds(30))
          .value()
          .value()
          .success());
  Argv argv = qemu_argv(vm, {});
  argv.emplace_back("-S");

  const auto qemu = launch_qemu(host, dir, argv);

  REQUIRE(qemu);
  std::optional<std::string> uuid;
  const bool answered = eventually([&] {
    auto qmp = QmpClient::connect(dir, {});
    if (qmp) uuid = query_uuid(*qmp).value();
    return qmp.has_value() || !(*qemu)->running();
  });
  INFO(read_text(dir / "qemu.log"));
  CHECK(answered);
  CHECK(uuid == ulid_to_uuid(vm.uid));
  CHECK(stop_qemu(**qemu, dir, {}));
  CHECK_FALSE((*qemu)->running());
}

}  // namespace
}  // namespace fuse
