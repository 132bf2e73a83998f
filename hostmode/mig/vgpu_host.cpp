#include "hostmode/mig/vgpu_host.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <set>

#include "base/command.h"
#include "base/text.h"
#include "hostmode/mig/vgpu_types.h"

namespace fuse {

namespace {

constexpr std::string_view mdev_bus = "/sys/class/mdev_bus";
constexpr std::string_view mdev_devices = "/sys/bus/mdev/devices";

fs::path types_dir(const std::string& function) {
  return fs::path(mdev_bus) / function / "mdev_supported_types";
}

fs::path vendor_dir(const fs::path& function) {
  return function / "nvidia";
}

fs::path function_dir(const std::string& function) {
  return fs::path(pci_devices_dir) / function;
}

std::string read_word(Host& host, const fs::path& file) {
  const auto text = host.read_file(file);
  return text ? std::string(trim(*text)) : "";
}

// The card's virtual functions by their number, then the card itself.
std::vector<std::string> functions_of(Host& host, const std::string& card) {
  std::vector<std::pair<std::int64_t, std::string>> numbered;
  const auto names = host.list_dir(function_dir(card));
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    constexpr std::string_view prefix = "virtfn";
    if (!name.starts_with(prefix)) continue;
    const auto number = parse_int(std::string_view(name).substr(prefix.size()));
    const auto target = host.read_link(function_dir(card) / name);
    if (number && target) numbered.emplace_back(*number, target->filename().native());
  }
  std::ranges::sort(numbered);
  std::vector<std::string> functions;
  functions.reserve(numbered.size() + 1);
  for (auto& [number, address] : numbered) functions.push_back(std::move(address));
  functions.push_back(card);
  return functions;
}

std::vector<std::string> with_dir(Host& host, const std::vector<std::string>& functions,
                                  const std::function<fs::path(const std::string&)>& dir) {
  std::vector<std::string> out;
  std::ranges::copy_if(functions, std::back_inserter(out), [&](const std::string& function) {
    return static_cast<bool>(host.list_dir(dir(function)));
  });
  return out;
}

std::string what_is_missing(Host& host, const std::string& card, bool can_switch_on) {
  const auto most = parse_int(read_word(host, function_dir(card) / "sriov_totalvfs"));
  if (can_switch_on && most && *most > 0) {
    return cat("the virtual functions of ", card, " are switched off");
  }
  std::string words = cat("nothing here makes a device of a MIG instance: ", mdev_bus, '/', card,
                          " and ", vendor_dir(function_dir(card) / "virtfn0").native(),
                          " are both missing.  It takes NVIDIA's vGPU host driver, which needs a "
                          "licence");
  if (!most || *most == 0) words += ", and SR-IOV switched on in the firmware";
  return words;
}

// A type on that function which still can be made.
std::optional<VgpuType> offered_mdev_type(Host& host, const std::string& function,
                                          const MigProfile& profile) {
  std::vector<VgpuType> types;
  const auto names = host.list_dir(types_dir(function));
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    const fs::path dir = types_dir(function) / name;
    const auto left = parse_int(read_word(host, dir / "available_instances"));
    if (left && *left > 0) types.push_back({name, read_word(host, dir / "name")});
  }
  return type_for(types, profile);
}

Result<VgpuPlace> mdev_place(Host& host, const VgpuHost& vgpu, const MigProfile& profile,
                             const std::string& uuid) {
  for (const std::string& function : vgpu.functions) {
    const auto type = offered_mdev_type(host, function, profile);
    if (!type) continue;
    return VgpuPlace{types_dir(function) / type->id / "create", uuid,
                     (fs::path(mdev_devices) / uuid).native()};
  }
  return Error{ErrorCode::unavailable, "no function offers a mediated device for it"};
}

Result<VgpuPlace> vendor_place(Host& host, const VgpuHost& vgpu, const MigProfile& profile) {
  for (const std::string& function : vgpu.functions) {
    const fs::path dir = vendor_dir(function_dir(function));
    if (read_word(host, dir / "current_vgpu_type") != "0") continue;
    // The list shrinks with every device that is made, so it is read each time.
    const auto type =
        type_for(parse_creatable_types(read_word(host, dir / "creatable_vgpu_types")), profile);
    if (!type) continue;
    return VgpuPlace{dir / "current_vgpu_type", type->id, function_dir(function).native()};
  }
  return Error{ErrorCode::unavailable,
               "no free virtual function offers a vGPU type for it (creatable_vgpu_types)"};
}

bool is_mdev(const fs::path& path) {
  return path.parent_path() == mdev_devices;
}

}  // namespace

VgpuHost look_for_vgpu(Host& host, const std::string& card) {
  const auto functions = functions_of(host, card);
  auto mdev = with_dir(host, functions, types_dir);
  if (!mdev.empty()) return {.way = VgpuWay::mdev, .functions = std::move(mdev)};
  auto vendor = with_dir(host, functions, [](const std::string& function) {
    return vendor_dir(function_dir(function));
  });
  // The card's own folder takes no vGPU.
  std::erase(vendor, card);
  if (!vendor.empty()) return {.way = VgpuWay::vendor, .functions = std::move(vendor)};
  VgpuHost none;
  const auto manage = host.list_dir(fs::path(sriov_manage).parent_path());
  none.can_switch_on =
      functions.size() == 1 && manage &&
      std::ranges::find(*manage, fs::path(sriov_manage).filename().native()) != manage->end();
  none.missing = what_is_missing(host, card, none.can_switch_on);
  return none;
}

Result<void> switch_on_functions(Host& host, const std::string& card) {
  auto done = require_command(host, {.argv = {std::string(sriov_manage), "-e", card}}, {},
                              {.timeout = std::chrono::minutes(2)});
  if (!done) return done.error();
  return {};
}

Result<VgpuPlace> find_vgpu_place(Host& host, const VgpuHost& vgpu, const MigProfile& profile,
                                  const std::string& uuid) {
  switch (vgpu.way) {
    case VgpuWay::mdev:
      return mdev_place(host, vgpu, profile, uuid);
    case VgpuWay::vendor:
      return vendor_place(host, vgpu, profile);
    case VgpuWay::none:
      break;
  }
  return Error{ErrorCode::unavailable, vgpu.missing};
}

Result<void> make_vgpu(Host& host, const VgpuPlace& place) {
  auto made = host.write_file(place.file, place.text);
  if (!made) return made;
  if (has_vgpu(host, place.path)) return {};
  return Error{ErrorCode::internal, cat(place.path, " did not become a device")};
}

Result<void> remove_vgpu(Host& host, const std::string& path, const KernelWrites& writes) {
  if (!has_vgpu(host, path)) return {};
  // Hangs while a VM has it.
  auto done = is_mdev(path)
                  ? writes.write(fs::path(path) / "remove", "1", writes.limit)
                  : writes.write(vendor_dir(path) / "current_vgpu_type", "0", writes.limit);
  if (!done) return done;
  if (!has_vgpu(host, path)) return {};
  return Error{ErrorCode::internal, cat(path, " is still there")};
}

bool has_vgpu(Host& host, const std::string& path) {
  if (is_mdev(path)) return static_cast<bool>(host.list_dir(path));
  const std::string type = read_word(host, vendor_dir(path) / "current_vgpu_type");
  return !type.empty() && type != "0";
}

std::vector<DeviceHolder> vgpu_holders(Host& host, const std::string& path) {
  std::set<std::string> files;
  if (const auto group = host.read_link(fs::path(path) / "iommu_group")) {
    files.insert(cat("/dev/vfio/", group->filename().native()));
  }
  const auto devices = host.list_dir(fs::path(path) / "vfio-dev");
  for (const std::string& name : devices ? *devices : std::vector<std::string>()) {
    files.insert("/dev/vfio/devices/" + name);
  }
  return find_holders(host, files);
}

}  // namespace fuse
