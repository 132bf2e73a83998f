#include "tests/hostmode/devices/vgpu_sim.h"

#include <algorithm>

#include "base/text.h"

namespace fuse {

namespace {

// The types of an A100 and the profiles behind them.
const std::map<std::string, std::string> mdev_types = {
    {"nvidia-474", "1g.5gb"}, {"nvidia-475", "2g.10gb"}, {"nvidia-476", "3g.20gb"}};
const std::map<std::string, std::string> mdev_names = {{"nvidia-474", "GRID A100-1-5C"},
                                                       {"nvidia-475", "GRID A100-2-10C"},
                                                       {"nvidia-476", "GRID A100-3-20C"}};
const std::map<std::string, std::string> vendor_types = {{"1414", "1g.24gb+gfx"},
                                                         {"1416", "2g.48gb+gfx"}};
const std::map<std::string, std::string> vendor_names = {
    {"1414", "NVIDIA RTX Pro 6000 Blackwell DC-1-24Q"},
    {"1416", "NVIDIA RTX Pro 6000 Blackwell DC-2-48Q"}};

std::ptrdiff_t instances_of(SimSmi& smi, const std::string& card, const std::string& profile) {
  return std::ranges::count_if(smi.card(card).instances, [&](const auto& entry) {
    return entry.second.profile.name == profile;
  });
}

}  // namespace

void add_mig_card(SimBox& box, const std::string& address, const std::string& device) {
  box.add({.address = address,
           .device = device,
           .driver = "nvidia",
           .group = address.substr(5, 2),
           .numa = 0,
           .virtual_functions = 0});
}

void add_virtual_functions(SimBox& box, const std::string& card,
                           const std::vector<std::string>& functions) {
  for (std::size_t i = 0; i < functions.size(); ++i) {
    box.add({.address = functions[i],
             .driver = "nvidia",
             .group = cat(9, functions[i].back()),
             .physical = card});
    box.add_link(cat("/sys/devices/pci0000:00/", card, "/virtfn", i), cat("../", functions[i]));
  }
}

MdevSim::MdevSim(SimBox& box, SimSmi& smi, std::string card, std::vector<std::string> functions)
    : box_(box), smi_(smi), card_(std::move(card)), functions_(std::move(functions)) {
  add_virtual_functions(box, card_, functions_);
  refresh();
  smi.after_change = [this] { refresh(); };
  box.after_write = [this](const auto& path, const auto& text) { obey(path, text); };
}

std::vector<std::string> MdevSim::devices() const {
  std::vector<std::string> uuids;
  for (const auto& [uuid, device] : devices_) uuids.push_back(uuid);
  return uuids;
}

void MdevSim::refresh() {
  for (const std::string& function : functions_) {
    const bool taken = std::ranges::any_of(
        devices_, [&](const auto& entry) { return entry.second.function == function; });
    for (const auto& [type, profile] : mdev_types) {
      const auto made = std::ranges::count_if(
          devices_, [&](const auto& entry) { return entry.second.type == type; });
      const bool left = !taken && instances_of(smi_, card_, profile) > made;
      const std::string dir = cat("/sys/class/mdev_bus/", function, "/mdev_supported_types/", type);
      box_.add_file(cat(dir, "/name"), cat(mdev_names.at(type), "\n"));
      box_.add_file(cat(dir, "/available_instances"), left ? "1\n" : "0\n");
      box_.add_file(cat(dir, "/create"), "");
    }
  }
}

void MdevSim::obey(const std::string& path, const std::string& text) {
  const fs::path file(path);
  if (file.filename() == "create") {
    const fs::path type = file.parent_path();
    devices_[text] = {type.parent_path().parent_path().filename().native(),
                      type.filename().native()};
    box_.add_file(cat("/sys/bus/mdev/devices/", text, "/remove"), "");
    box_.add_link(cat("/sys/bus/mdev/devices/", text, "/iommu_group"),
                  cat("../../../../kernel/iommu_groups/7", devices_.size()));
  } else if (file.filename() == "remove") {
    const std::string uuid = file.parent_path().filename().native();
    devices_.erase(uuid);
    fs::remove_all(box_.root() / cat("sys/bus/mdev/devices/", uuid));
  }
  refresh();
}

VendorVfioSim::VendorVfioSim(SimBox& box, SimSmi& smi, std::string card,
                             std::vector<std::string> functions)
    : box_(box), smi_(smi), card_(std::move(card)), functions_(std::move(functions)) {
  add_virtual_functions(box, card_, functions_);
  for (const std::string& function : functions_) {
    box_.add_file(cat("/sys/devices/pci0000:00/", function, "/nvidia/current_vgpu_type"), "0\n");
  }
  refresh();
  smi.after_change = [this] { refresh(); };
  box.after_write = [this](const auto&, const auto&) { refresh(); };
}

std::string VendorVfioSim::type_of(const std::string& function) const {
  return std::string(
      trim(box_.text(cat("/sys/devices/pci0000:00/", function, "/nvidia/current_vgpu_type"))));
}

void VendorVfioSim::refresh() {
  std::string creatable = "ID    : vGPU Name\n";
  for (const auto& [id, profile] : vendor_types) {
    const auto made = std::ranges::count_if(
        functions_, [&, id = id](const std::string& function) { return type_of(function) == id; });
    if (instances_of(smi_, card_, profile) > made) {
      creatable += cat(id, "  : ", vendor_names.at(id), "\n");
    }
  }
  for (const std::string& function : functions_) {
    box_.add_file(cat("/sys/devices/pci0000:00/", function, "/nvidia/creatable_vgpu_types"),
                  creatable);
  }
}

}  // namespace fuse
