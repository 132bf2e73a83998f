#include "hostmode/devices/holders.h"

#include <algorithm>

#include "base/text.h"

namespace fuse {

namespace {

constexpr std::string_view nvidia_prefix = "/dev/nvidia";

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

std::string read_word(Host& host, const fs::path& file) {
  const auto text = host.read_file(file);
  return text ? std::string(trim(*text)) : "";
}

std::vector<std::string> names_in(Host& host, const fs::path& dir) {
  auto names = host.list_dir(dir);
  return names ? *std::move(names) : std::vector<std::string>();
}

// The N of /dev/nvidiaN, from the driver's own folder; "" when it says nothing.
std::string nvidia_minor(Host& host, const std::string& address) {
  const std::string text =
      read_word(host, fs::path("/proc/driver/nvidia/gpus") / address / "information");
  constexpr std::string_view key = "Device Minor:";
  for (const std::string& line : split(text, '\n')) {
    if (line.starts_with(key)) {
      const std::string_view minor = trim(std::string_view(line).substr(key.size()));
      return is_number(minor) ? std::string(minor) : "";
    }
  }
  return "";
}

void add_nvidia_nodes(Host& host, const PciDevice& device, std::set<std::string>& files) {
  const std::string minor = nvidia_minor(host, device.address);
  if (!minor.empty()) {
    files.insert(cat(nvidia_prefix, minor));
    return;
  }
  for (const std::string& name : names_in(host, "/dev")) {
    const std::string path = cat("/dev/", name);
    if (path.starts_with(nvidia_prefix) && is_number(path.substr(nvidia_prefix.size()))) {
      files.insert(path);
    }
  }
}

}  // namespace

std::set<std::string> device_files_of(Host& host, const PciDevice& device) {
  std::set<std::string> files;
  const fs::path dir = fs::path(pci_devices_dir) / device.address;
  if (device.driver == "nvidia") add_nvidia_nodes(host, device, files);
  for (const std::string& name : names_in(host, dir / "drm")) {
    if (name.starts_with("card") || name.starts_with("renderD")) files.insert("/dev/dri/" + name);
  }
  for (const std::string& name : names_in(host, dir / "vfio-dev")) {
    files.insert("/dev/vfio/devices/" + name);
  }
  if (!device.group.empty()) files.insert("/dev/vfio/" + device.group);
  return files;
}

std::vector<DeviceHolder> find_holders(Host& host, const std::set<std::string>& files) {
  std::vector<DeviceHolder> holders;
  if (files.empty()) return holders;
  for (const std::string& name : names_in(host, "/proc")) {
    if (!is_number(name)) continue;
    const fs::path process = fs::path("/proc") / name;
    std::set<std::string> held;
    for (const std::string& fd : names_in(host, process / "fd")) {
      const auto target = host.read_link(process / "fd" / fd);
      if (target && files.contains(target->native())) held.insert(target->native());
    }
    for (const std::string& file : held) {
      holders.push_back({.pid = parse_int(name).value_or(0),
                         .command = read_word(host, process / "comm"),
                         .service = unit_of_cgroup(read_word(host, process / "cgroup")),
                         .file = file});
    }
  }
  return holders;
}

std::string unit_of_cgroup(std::string_view text) {
  std::string unit;
  for (const std::string& line : split(text, '\n')) {
    for (const std::string& part : split(trim(line), '/')) {
      if (part.ends_with(".service") || part.ends_with(".scope")) unit = part;
    }
  }
  return unit;
}

std::string holder_words(const std::vector<DeviceHolder>& holders) {
  constexpr std::size_t most = 5;
  std::vector<std::string> words;
  for (const DeviceHolder& holder : holders) {
    if (words.size() == most) {
      words.push_back(cat("and ", holders.size() - most, " more"));
      break;
    }
    const std::string service = holder.service.empty() ? "" : cat(", ", holder.service);
    words.push_back(cat("pid ", holder.pid, " (", holder.command.empty() ? "?" : holder.command,
                        service, ") has ", holder.file, " open"));
  }
  return join(words, ", ");
}

std::string holder_hint(const std::vector<DeviceHolder>& holders, const std::string& address) {
  if (holders.empty()) return "";
  const DeviceHolder& first = holders.front();
  if (first.service.starts_with("nvidia-persistenced") ||
      first.command.starts_with("nvidia-persist")) {
    return cat("let it go of this card: nvidia-smi -i ", address, " -pm 0");
  }
  if (first.service.ends_with(".service")) return cat("stop it: systemctl stop ", first.service);
  return cat("end it: kill ", first.pid);
}

}  // namespace fuse
