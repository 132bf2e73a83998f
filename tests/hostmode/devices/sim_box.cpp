#include "tests/hostmode/devices/sim_box.h"

#include <algorithm>
#include <cerrno>

#include "base/text.h"

namespace fuse {

namespace {

constexpr std::string_view devices = "/sys/bus/pci/devices/";
constexpr std::string_view drivers = "/sys/bus/pci/drivers/";

std::string hex(std::uint64_t value) {
  std::string out;
  for (int shift = 60; shift >= 0; shift -= 4) out += "0123456789abcdef"[value >> shift & 15U];
  return out;
}

std::string resource_text(std::uint64_t vram) {
  std::string out = "0x00000000f6000000 0x00000000f6ffffff 0x0000000000040200\n";
  if (vram > 0) {
    const std::uint64_t start = 0x2000000000;
    out += cat("0x", hex(start), " 0x", hex(start + vram - 1), " 0x000000000014220c\n");
  }
  while (std::ranges::count(out, '\n') < 13) {
    out += "0x0000000000000000 0x0000000000000000 0x0000000000000000\n";
  }
  return out;
}

// The number in little-endian, as configuration space has it.
std::string config_bytes(const std::string& vendor, const std::string& device) {
  const auto byte = [](const std::string& text, std::size_t from) {
    return static_cast<char>(std::stoi(text.substr(from, 2), nullptr, 16));
  };
  std::string out = {byte(vendor, 2), byte(vendor, 0), byte(device, 2), byte(device, 0)};
  out.resize(64, '\0');
  return out;
}

}  // namespace

SimBox::SimBox() : real_(dir_.path()) {
  add_file("/sys/bus/pci/drivers_probe", "");
  for (const std::string_view driver : {"vfio-pci", "nvidia", "snd_hda_intel", "xhci_hcd", "nvme",
                                        "pcieport", "nouveau", "amdgpu"}) {
    add_file(cat(drivers, driver, "/unbind"), "");
    add_file(cat(drivers, driver, "/bind"), "");
  }
  fs::create_directories(at("/proc"));
  fs::create_directories(at("/dev/vfio"));
}

void SimBox::add(const SimFunction& function) {
  functions_[function.address] = function;
  SimFunction& kept = functions_[function.address];
  if (kept.native.empty() && kept.driver != "vfio-pci") kept.native = kept.driver;
  const std::string dir = cat("/sys/devices/pci0000:00/", function.address);
  add_link(cat(devices, function.address), cat("../../../devices/pci0000:00/", function.address));
  add_file(cat(dir, "/vendor"), cat("0x", function.vendor, "\n"));
  add_file(cat(dir, "/device"), cat("0x", function.device, "\n"));
  add_file(cat(dir, "/class"), cat("0x", function.code, "\n"));
  add_file(cat(dir, "/config"), config_bytes(function.vendor, function.device));
  add_file(cat(dir, "/resource"), resource_text(function.vram));
  add_file(cat(dir, "/numa_node"), cat(function.numa, "\n"));
  add_file(cat(dir, "/reset_method"), "flr bus\n");
  add_file(cat(dir, "/reset"), "");
  add_file(cat(dir, "/driver_override"), "(null)\n");
  if (function.boot_vga) add_file(cat(dir, "/boot_vga"), *function.boot_vga ? "1\n" : "0\n");
  if (function.virtual_functions >= 0) {
    add_file(cat(dir, "/sriov_totalvfs"), "16\n");
    add_file(cat(dir, "/sriov_numvfs"), cat(function.virtual_functions, "\n"));
    for (int i = 0; i < function.virtual_functions; ++i) {
      add_link(cat(dir, "/virtfn", i), cat("../virtual-", i));
    }
  }
  if (!function.physical.empty()) add_link(cat(dir, "/physfn"), cat("../", function.physical));
  if (!function.group.empty()) {
    const std::string group = cat("/sys/kernel/iommu_groups/", function.group);
    add_file(cat(group, "/type"), "DMA\n");
    add_link(cat(dir, "/iommu_group"), cat("../../../kernel/iommu_groups/", function.group));
    add_link(cat(group, "/devices/", function.address),
             cat("../../../../devices/pci0000:00/", function.address));
  }
  if (!function.driver.empty()) bind(function.address, function.driver);
}

void SimBox::add_file(const std::string& path, std::string_view text) {
  write_text(at(path), text);
}

void SimBox::add_link(const std::string& path, const std::string& target) {
  fs::create_directories(fs::path(at(path)).parent_path());
  fs::remove(at(path));
  fs::create_symlink(target, at(path));
}

void SimBox::add_process(int pid, const std::string& command, const std::string& unit,
                         const std::vector<std::string>& files) {
  const std::string dir = cat("/proc/", pid);
  add_file(cat(dir, "/comm"), cat(command, "\n"));
  add_file(cat(dir, "/cgroup"), cat("0::/system.slice/", unit, "\n"));
  int fd = 3;
  for (const std::string& file : files) add_link(cat(dir, "/fd/", fd++), file);
}

void SimBox::remove_process(int pid) {
  fs::remove_all(at(cat("/proc/", pid)));
}

std::string SimBox::driver_of(const std::string& address) const {
  std::error_code none;
  return fs::read_symlink(at(cat(devices, address, "/driver")), none).filename().native();
}

void SimBox::bind(const std::string& address, const std::string& driver) {
  add_link(cat("/sys/devices/pci0000:00/", address, "/driver"),
           cat("../../../bus/pci/drivers/", driver));
  add_link(cat(drivers, driver, "/", address), cat("../../../../devices/pci0000:00/", address));
}

void SimBox::unbind(const std::string& address) {
  const std::string driver = driver_of(address);
  fs::remove(at(cat(devices, address, "/driver")));
  fs::remove(at(cat(drivers, driver, "/", address)));
}

void SimBox::probe(const std::string& address) {
  if (!driver_of(address).empty()) return;
  const std::string wanted(trim(text(cat(devices, address, "/driver_override"))));
  const std::string driver = wanted == "(null)" ? functions_[address].native : wanted;
  if (!driver.empty() && fs::exists(at(cat(drivers, driver)))) bind(address, driver);
}

void SimBox::obey(const std::string& path, const std::string& text) {
  const std::string word(trim(text));
  const fs::path file(path);
  if (path.ends_with("/driver_override")) {
    write_text(at(path), word.empty() ? "(null)\n" : cat(word, "\n"));
  } else if (path.ends_with("/unbind")) {
    if (driver_of(word) == file.parent_path().filename()) unbind(word);
  } else if (path.ends_with("/bind")) {
    bind(word, file.parent_path().filename());
  } else if (path.ends_with("/drivers_probe")) {
    probe(word);
  }
}

Result<void> SimBox::write_file(const fs::path& file, std::string_view text) {
  const std::string path = file.native();
  const std::string said = cat(path, " ", trim(text));
  for (const auto& [part, error] : refused) {
    if (said.find(part) != std::string::npos) return error;
  }
  writes.push_back(said);
  // As sysfs, which makes no files.
  if (path.starts_with("/sys/") && !fs::exists(at(path))) {
    return errno_error(cat("open ", path), ENOENT);
  }
  if (auto written = real_.write_file(file, text); !written) return written;
  obey(path, std::string(text));
  after_write(path, std::string(trim(text)));
  return {};
}

Result<void> SimBox::replace_file(const fs::path& file, std::string_view text, mode_t mode) {
  const std::string said = cat("replace ", file.native());
  for (const auto& [part, error] : refused) {
    if (said.find(part) != std::string::npos) return error;
  }
  writes.push_back(said);
  return real_.replace_file(file, text, mode);
}

Result<std::unique_ptr<Process>> SimBox::spawn(const SpawnSpec& spec) {
  ran.push_back(spec.argv);
  const auto answer = on_run(spec.argv);
  if (!answer) return errno_error(cat("start ", spec.argv.front()), ENOENT);
  SpawnSpec real = spec;
  real.argv = {"/bin/sh",
               "-c",
               "printf %s \"$1\"; printf %s \"$2\" >&2; exit \"$3\"",
               "sh",
               answer->out,
               answer->err,
               std::to_string(answer->code)};
  return real_.spawn(real);
}

}  // namespace fuse
