#include "hostmode/qemu_argv.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <map>
#include <memory>

#include "base/ids.h"
#include "base/posix_host.h"
#include "base/text.h"
#include "hostmode/mmio_window.h"
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

TEST_CASE("a QEMU that becomes another user may do so in its sandbox") {
  const Argv argv =
      qemu_argv(sample_record(), {.user = QemuUser{.name = "nobody", .uid = 65534, .gid = 65533}});
  CHECK(word_after(argv, "-runas") == "65534:65533");
  CHECK(word_after(argv, "-sandbox") ==
        "on,obsolete=deny,elevateprivileges=allow,spawn=deny,resourcecontrol=deny");
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

// The command lines of VMs as hosts have them, each in argv/NAME.txt, a word a line.
struct Golden {
  std::string name{};
  VmRecord vm{};
  QemuFacts facts{};
};

VmDevice function(const std::string& address, const std::string& group,
                  const std::string& uuid = "") {
  return {.kind = "pci", .address = address, .uuid = uuid, .group = group};
}

std::vector<PciBar> large(std::uint64_t gib) {
  return {{.index = 0, .size = 16U << 20U},
          {.index = 1, .size = gib << 30U, .prefetchable = true},
          {.index = 3, .size = 32U << 20U, .prefetchable = true}};
}

Golden with_devices(const std::string& name, std::vector<VmDevice> devices) {
  Golden golden{.name = name, .vm = sample_record()};
  golden.vm.devices = std::move(devices);
  return golden;
}

Golden eight_h100() {
  Golden golden = with_devices("h100-eight", {});
  golden.vm.cpus = 16;
  golden.vm.memory_mb = 65536;
  std::map<std::string, std::vector<PciBar>> bars;
  std::vector<std::optional<std::int32_t>> nodes;
  for (const std::string bus : {"1b", "43", "52", "61", "9d", "c3", "d1", "df"}) {
    golden.vm.devices.push_back(function(cat("0000:", bus, ":00.0"), bus, cat("GPU-", bus)));
    bars[golden.vm.devices.back().address] = large(128);
    nodes.emplace_back(bus < "9d" ? 0 : 1);
  }
  const HostNode node{.free_mb = 1000, .page_kib = 1048576, .free_huge_mb = 40960};
  HostNode other = node;
  other.id = 1;
  golden.facts = {.memory = plan_memory(golden.vm.memory_mb, golden.vm.cpus, nodes, {node, other}),
                  .mmio_gib = mmio_window_gib(bars)};
  return golden;
}

std::vector<Golden> goldens() {
  std::vector<Golden> all = {
      with_devices("no-gpu", {}),
      with_devices("a100-with-audio",
                   {function("0000:41:00.0", "17", "GPU-a"), function("0000:41:00.1", "17")}),
      with_devices("two-in-one-group", {function("0000:27:00.0", "30", "GPU-a"),
                                        function("0000:28:00.0", "30", "GPU-b")}),
      eight_h100(),
      with_devices("mdev", {{.kind = "mdev",
                             .address = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001",
                             .uuid = "83b8f4f2-509f-382f-3c1e-e6bfe0fa1001"}}),
      with_devices("two-vendor-vfio", {{.kind = "vf", .address = "0000:26:00.4", .uuid = "v"},
                                       {.kind = "vf", .address = "0000:26:00.5", .uuid = "w"}}),
      with_devices("firmware", {}),
      with_devices("firmware-a100", {function("0000:41:00.0", "17", "GPU-a")}),
      with_devices("tcg-user-net", {}),
  };
  for (Golden& golden : all) {
    if (!golden.name.starts_with("firmware")) continue;
    golden.vm.image = {.name = "debian", .disk = "/images/debian.qcow2"};
    golden.facts.firmware_code = "/usr/share/OVMF/OVMF_CODE_4M.fd";
    if (!golden.vm.devices.empty()) golden.facts.mmio_gib = 160;
  }
  all[1].facts.mmio_gib = mmio_window_gib({{"0000:41:00.0", large(64)}});
  all[1].facts.memory =
      plan_memory(2048, 2, {1}, {{.id = 0, .free_mb = 9000}, {.id = 1, .free_mb = 9000}});
  all.back().vm.accel = Accel::tcg;
  return all;
}

TEST_CASE("the command lines of known hosts are as written down") {
  const fs::path dir = fs::path(FUSE_SOURCE_DIR) / "tests/hostmode/argv";
  for (const Golden& golden : goldens()) {
    INFO(golden.name);
    const std::string argv = join(qemu_argv(golden.vm, golden.facts), "\n") + "\n";
    const fs::path file = dir / (golden.name + ".txt");
    if (std::getenv("FUSE_WRITE_GOLDENS") != nullptr) write_text(file, argv);
    CHECK(argv == read_text(file));
  }
}

// A header is all that a QEMU looks at which does not run the guest.
std::string kernel_header() {
  std::string header(4096, '\0');
  header[0x1fe] = '\x55';
  header[0x1ff] = '\xaa';
  header.replace(0x202, 4, "HdrS");
  header[0x206] = '\x0f';
  header[0x207] = '\x02';
  header[0x211] = '\x01';
  header[0x22f] = '\x7f';  // initrd_addr_max
  return header;
}

// A QEMU that stands still before it would run the guest, and answers on its monitor.
void check_accepted(VmRecord vm, QemuFacts facts) {
  const TestDir scratch;
  PosixHost host;
  vm.accel = Accel::tcg;
  vm.memory_mb = 128;
  const fs::path dir = scratch.path() / std::string(90, 'd') / vm.uid;
  if (boots_by_firmware(vm.image)) {
    facts.firmware_code = scratch.path() / "code,with comma";
    write_text(facts.firmware_code, std::string(65536, '\0'));
    write_text(dir / vm_file::firmware_vars, std::string(65536, '\0'));
    write_text(dir / vm_file::seed, std::string(65536, '\0'));
  } else {
    vm.image.kernel = scratch.path() / "kernel,with comma";
    vm.image.initrd = scratch.path() / "initrd";
    write_text(vm.image.kernel, kernel_header());
    write_text(vm.image.initrd, "initrd");
  }
  fs::create_directories(dir);
  REQUIRE(
      host.spawn({.argv = {"qemu-img", "create", "-q", "-f", "qcow2", dir / "disk.qcow2", "1M"}})
          .value()
          ->wait(std::chrono::seconds(30))
          .value()
          .value()
          .success());
  Argv argv = qemu_argv(vm, facts);
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

TEST_CASE("QEMU accepts the command line") {
  check_accepted(sample_record(), {});
}

TEST_CASE("QEMU accepts the command line of what boots by firmware") {
  VmRecord vm = sample_record();
  vm.image = {.name = "debian", .disk = "/images/debian.qcow2"};
  check_accepted(vm, {.mmio_gib = 160});
}

// All of what a host adds for devices, but the devices themselves.
TEST_CASE("QEMU accepts a guest's memory on nodes, and a large window for regions") {
  const std::vector<HostNode> nodes = read_host_nodes(*std::make_unique<PosixHost>());
  REQUIRE_FALSE(nodes.empty());
  VmRecord vm = sample_record();
  vm.cpus = 3;
  const std::int32_t node = nodes.front().id;
  SECTION("one") {
    check_accepted(vm, {.memory = {.shares = {{.node = node, .memory_mb = 128, .cpus = 3}}},
                        .mmio_gib = window_within(2080, 128, 40)});
  }
  SECTION("two") {
    check_accepted(
        vm, {.memory = {.shares = {{.node = node, .memory_mb = 64, .first_cpu = 0, .cpus = 2},
                                   {.node = node, .memory_mb = 64, .first_cpu = 2, .cpus = 1}}}});
  }
}

}  // namespace
}  // namespace fuse
