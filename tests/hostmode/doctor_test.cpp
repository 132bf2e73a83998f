#include "hostmode/doctor.h"

#include <algorithm>

#include "base/text.h"
#include "tests/catch.h"
#include "tests/hostmode/devices/boxes.h"

namespace fuse {
namespace {

const DoctorOptions options{.devices = {.dir = "/var/lib/fuse"},
                            .images_dir = "/var/lib/fuse/images"};

std::string about(const std::vector<Finding>& findings, const std::string& name) {
  const auto found = std::ranges::find(findings, name, &Finding::name);
  return found == findings.end() ? "" : cat(to_string(found->kind), ": ", found->words);
}

TEST_CASE("a host that has nothing hears what it lacks, with a way out each time") {
  SimBox box;
  const auto findings = examine_host(box, options);
  CHECK(about(findings, "iommu") == "problem: the kernel has no IOMMU groups");
  CHECK(about(findings, "kvm").starts_with("problem: "));
  CHECK(about(findings, "qemu").starts_with("problem: "));
  CHECK(about(findings, "images") == "problem: there are none in /var/lib/fuse/images");
  CHECK(about(findings, "port") == "pass: 8091 is free");
  for (const Finding& finding : findings) {
    INFO(finding.name);
    if (finding.kind == Finding::Kind::problem) CHECK_FALSE(finding.fix.empty());
    if (finding.kind == Finding::Kind::pass) CHECK(finding.fix.empty());
  }
}

TEST_CASE("a host that is ready passes") {
  SimBox box;
  make_consumer_box(box);
  for (int i = 0; i < 4; ++i) {
    box.unbind(cat("0000:09:00.", i));
    box.bind(cat("0000:09:00.", i), "vfio-pci");
  }
  for (const std::string file :
       {"/dev/kvm", "/dev/vfio/vfio", "/usr/share/OVMF/OVMF_CODE_4M.fd",
        "/usr/share/OVMF/OVMF_VARS_4M.fd", "/var/lib/fuse/images/base.json"}) {
    box.add_file(file, "");
  }
  box.add_file("/etc/passwd", "nobody:x:65534:65534::/:/bin/false\n");
  box.add_file("/proc/self/limits",
               "Limit  Soft  Hard\nMax locked memory         unlimited  unlimited  bytes\n");
  box.add_file("/proc/meminfo", "MemTotal: 1 kB\nHugePages_Total:      16\n");
  box.on_run = [](const std::vector<std::string>& argv) -> std::optional<SimBox::Answer> {
    if (argv.front() == "qemu-system-x86_64") return SimBox::Answer{"QEMU emulator 7.2\nmore\n"};
    if (argv.front() == "timedatectl") return SimBox::Answer{"yes\n"};
    return std::nullopt;
  };
  const auto findings = examine_host(box, options);
  for (const Finding& finding : findings) {
    INFO(finding.name << ": " << finding.words);
    CHECK(finding.kind == Finding::Kind::pass);
  }
  CHECK(about(findings, "qemu") == "pass: QEMU emulator 7.2");
  CHECK(about(findings, "qemu-user") == "pass: QEMU becomes nobody");
  CHECK(about(findings, "card 0000:09:00.0") == "pass: 10de-1e84");

  SECTION("and what is not as it should be is named") {
    box.add_file("/sys/kernel/iommu_groups/21/type", "identity\n");
    box.add_file("/proc/net/tcp", "  sl  local rem st\n   0: 00000000:1F9B 00000000:0000 0A 0\n");
    box.add_file("/proc/self/limits", "Max locked memory  8388608  8388608  bytes\n");
    box.add_file("/sys/devices/pci0000:00/0000:09:00.0/config", std::string(64, '\xff'));
    const auto worse = examine_host(box, options);
    CHECK(about(worse, "group 21") == "problem: its type is identity: not translated");
    CHECK(about(worse, "port") == "note: something listens on 8091");
    CHECK(about(worse, "memlock").starts_with("note: this shell may lock 8388608 bytes"));
    CHECK(about(worse, "card 0000:09:00.0").starts_with("problem: 10de-1e84, sick: "));
  }
  SECTION("a file that cannot be read is a problem of its own") {
    box.add_file("/var/lib/fuse/vfio-inventory.txt", "nonsense\n");
    CHECK(about(examine_host(box, options), "inventory")
              .starts_with("problem: /var/lib/fuse/vfio-inventory.txt:1: "));
  }
}

TEST_CASE("ports are read from the kernel's table") {
  CHECK(listening_ports("  sl  local_address rem_address   st\n"
                        "   0: 0100007F:1F9B 00000000:0000 0A 00000000\n"
                        "   1: 0100007F:0016 0100007F:9C40 01 00000000\n"
                        "   2: 00000000000000000000000000000000:0050 0:0000 0A 0\n") ==
        std::vector<std::uint16_t>{0x1F9B, 0x50});
  CHECK(listening_ports("x y z 0A\n").empty());
}

}  // namespace
}  // namespace fuse
