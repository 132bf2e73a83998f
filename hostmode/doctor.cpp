#include "hostmode/doctor.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "base/command.h"
#include "base/files.h"
#include "base/text.h"
#include "hostmode/devices/inventory.h"
#include "hostmode/firmware.h"
#include "hostmode/mig/vgpu_host.h"
#include "hostmode/qemu_user.h"

namespace fuse {

namespace {

using Kind = Finding::Kind;
using Findings = std::vector<Finding>;

Finding pass(std::string name, std::string words) {
  return {Kind::pass, std::move(name), std::move(words), ""};
}
Finding problem(std::string name, std::string words, std::string fix) {
  return {Kind::problem, std::move(name), std::move(words), std::move(fix)};
}
Finding note(std::string name, std::string words, std::string fix = "") {
  return {Kind::note, std::move(name), std::move(words), std::move(fix)};
}

std::string read_text_of(Host& host, const fs::path& file) {
  const auto text = host.read_file(file);
  return text ? *text : "";
}

// "KEY:   VALUE unit" -> "VALUE unit".
std::string value_in(std::string_view text, std::string_view key) {
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with(key)) return std::string(trim(std::string_view(line).substr(key.size())));
  }
  return "";
}

Finding examine_iommu(Host& host) {
  const auto groups = host.list_dir("/sys/kernel/iommu_groups");
  if (groups && !groups->empty()) return pass("iommu", cat(groups->size(), " groups"));
  return problem("iommu", "the kernel has no IOMMU groups",
                 "switch on VT-d or AMD-Vi in the firmware; on Intel boot with intel_iommu=on");
}

Finding examine_card(const GpuCard& card) {
  const std::string name = cat("card ", card.pci.address);
  const std::string model = card.facts.model.empty() ? card.kind : card.facts.model;
  const std::string words =
      card.reason.empty() ? model : cat(model, ", ", to_string(card.state), ": ", card.reason);
  switch (card.state) {
    case CardState::ready:
      return pass(name, words);
    case CardState::unsafe:
    case CardState::sick:
    case CardState::quarantined:
      return problem(name, words, card.hint);
    case CardState::unbound:
    case CardState::in_use:
    case CardState::mig:
    case CardState::display:
    case CardState::off:
      break;
  }
  return note(name, words, card.hint);
}

// A group that the kernel leaves untranslated cannot be handed to a VM.
void examine_group(Host& host, const CardGroup& group, Findings& out) {
  const std::string type(
      trim(read_text_of(host, fs::path("/sys/kernel/iommu_groups") / group.scan.number / "type")));
  if (type != "identity") return;
  out.push_back(problem(cat("group ", group.scan.number), "its type is identity: not translated",
                        cat("echo DMA > /sys/kernel/iommu_groups/", group.scan.number,
                            "/type while nothing in it has a driver")));
}

void examine_mig(Host& host, const GpuCard& card, Findings& out) {
  if (!equal_ignoring_case(card.facts.mig_mode, "enabled")) return;
  const VgpuHost vgpu = look_for_vgpu(host, card.pci.address);
  const std::string name = cat("mig ", card.pci.address);
  if (vgpu.way == VgpuWay::none) {
    out.push_back(problem(name, vgpu.missing,
                          cat("or hand it over whole: nvidia-smi -i ", card.pci.address,
                              " -mig 0, then fuse agent bind")));
  } else {
    out.push_back(pass(name, vgpu.way == VgpuWay::mdev ? "instances become mediated devices"
                                                       : "instances become virtual functions"));
  }
}

void examine_devices(Host& host, const DevicePaths& paths, Findings& out) {
  const auto inventory = read_inventory(host, paths, {});
  if (!inventory) {
    out.push_back(problem("inventory", inventory.error().message, "put the line right"));
    return;
  }
  if (inventory->groups.empty()) out.push_back(note("cards", inventory->summary));
  for (const CardGroup& group : inventory->groups) {
    examine_group(host, group, out);
    for (const GpuCard& card : group.cards) {
      out.push_back(examine_card(card));
      examine_mig(host, card, out);
    }
  }
  for (const std::string& words : inventory->notes) out.push_back(note("cards", words));
  const bool driver = has_entry(host, fs::path(pci_drivers_dir) / vfio_driver);
  if (driver && has_entry(host, "/dev/vfio/vfio")) {
    out.push_back(pass("vfio", "vfio-pci and /dev/vfio/vfio are there"));
  } else if (!inventory->groups.empty()) {
    out.push_back(problem("vfio", driver ? "/dev/vfio/vfio is missing" : "no vfio-pci driver",
                          "modprobe vfio-pci"));
  }
}

Finding examine_kvm(Host& host) {
  if (has_entry(host, "/dev/kvm")) return pass("kvm", "/dev/kvm is there");
  return problem("kvm", "there is no /dev/kvm: VMs are emulated, which is slow",
                 "switch on VT-x or AMD-V in the firmware; modprobe kvm-intel or kvm-amd");
}

Finding examine_qemu(Host& host, const std::string& qemu) {
  const auto version = require_command(host, {.argv = {qemu, "--version"}});
  if (version) return pass("qemu", version->substr(0, version->find('\n')));
  return problem("qemu", version.error().message, "install it (Debian: qemu-system-x86)");
}

// The agent is root on a GPU box, whoever asks.
Finding examine_qemu_user(Host& host, const std::string& wanted) {
  const auto user = find_qemu_user(host, wanted, 0);
  if (!user) return problem("qemu-user", user.error().message, user.error().details.at("hint"));
  if (*user) return pass("qemu-user", cat("QEMU becomes ", (*user)->name));
  return note("qemu-user", "QEMU stays root",
              "useradd --system --shell /usr/sbin/nologin fuse-qemu");
}

Finding examine_firmware(Host& host, const fs::path& code) {
  const auto firmware = find_firmware(host, code);
  if (firmware) return pass("ovmf", firmware->code.native());
  return note("ovmf", firmware.error().message,
              "needed for images with their own boot loader only");
}

void examine_memory(Host& host, Findings& out) {
  const std::string limits = read_text_of(host, "/proc/self/limits");
  const std::string locked = value_in(limits, "Max locked memory");
  if (locked.starts_with("unlimited")) {
    out.push_back(pass("memlock", "unlimited"));
  } else {
    out.push_back(note("memlock",
                       cat("this shell may lock ", locked.substr(0, locked.find(' ')),
                           " bytes; a VM with a device locks all of its memory"),
                       "the service needs LimitMEMLOCK=infinity"));
  }
  const std::string pages = value_in(read_text_of(host, "/proc/meminfo"), "HugePages_Total:");
  if (pages.empty() || pages == "0") {
    out.push_back(note("hugepages", "none are set aside",
                       "large VMs start faster with them: sysctl vm.nr_hugepages=N"));
  } else {
    out.push_back(pass("hugepages", cat(pages, " set aside")));
  }
}

Finding examine_images(Host& host, const fs::path& dir) {
  const auto names = host.list_dir(dir);
  if (names && !names->empty()) return pass("images", cat(dir.native(), " has some"));
  return problem("images", cat("there are none in ", dir.native()),
                 "make one: fuse image bake base");
}

Finding examine_port(Host& host, std::uint16_t port) {
  for (const char* const file : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    const auto ports = listening_ports(read_text_of(host, file));
    if (std::ranges::find(ports, port) == ports.end()) continue;
    return note("port", cat("something listens on ", port),
                "fine if it is the agent; else: ss -ltnp");
  }
  return pass("port", cat(port, " is free"));
}

Finding examine_clock(Host& host) {
  const auto answer =
      require_command(host, {.argv = {"timedatectl", "show", "-p", "NTPSynchronized", "--value"}});
  if (answer && trim(*answer) == "yes") return pass("clock", "synchronised");
  return note("clock", "it is not known to be synchronised", "guests take their time from it");
}

}  // namespace

std::string_view to_string(Finding::Kind kind) {
  switch (kind) {
    case Kind::pass:
      return "pass";
    case Kind::problem:
      return "problem";
    case Kind::note:
      break;
  }
  return "note";
}

std::vector<std::uint16_t> listening_ports(std::string_view text) {
  std::vector<std::uint16_t> ports;
  for (const std::string& line : split(text, '\n')) {
    // "  0: 00000000:1F9B 00000000:0000 0A ..."; 0A: it listens.
    std::vector<std::string> words;
    for (std::string& word : split(trim(line), ' ')) {
      if (!word.empty()) words.push_back(std::move(word));
    }
    if (words.size() < 4 || words[3] != "0A") continue;
    const std::string digits = words[1].substr(words[1].find(':') + 1);
    std::uint16_t port = 0;
    const auto [end, failure] =
        std::from_chars(digits.data(), digits.data() + digits.size(), port, 16);
    if (failure == std::errc() && end == digits.data() + digits.size()) ports.push_back(port);
  }
  return ports;
}

std::vector<Finding> examine_host(Host& host, const DoctorOptions& options) {
  Findings out;
  out.push_back(examine_iommu(host));
  examine_devices(host, options.devices, out);
  out.push_back(examine_kvm(host));
  out.push_back(examine_qemu(host, options.qemu));
  out.push_back(examine_qemu_user(host, options.qemu_user));
  out.push_back(examine_firmware(host, options.ovmf_code));
  examine_memory(host, out);
  out.push_back(examine_images(host, options.images_dir));
  out.push_back(examine_port(host, options.port));
  out.push_back(examine_clock(host));
  return out;
}

}  // namespace fuse
