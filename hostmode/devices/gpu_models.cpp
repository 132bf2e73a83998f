#include "hostmode/devices/gpu_models.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace fuse {

namespace {

struct Model {
  std::string_view device;
  std::string_view name;
};

// The pci.ids database, for cards that are rented out; sorted by id.
constexpr std::array nvidia_models = {
    Model{"1db4", "NVIDIA Tesla V100-PCIE-16GB"},
    Model{"1db6", "NVIDIA Tesla V100-PCIE-32GB"},
    Model{"1eb8", "NVIDIA T4"},
    Model{"20b0", "NVIDIA A100-SXM4-40GB"},
    Model{"20b1", "NVIDIA A100-PCIE-40GB"},
    Model{"20b2", "NVIDIA A100-SXM4-80GB"},
    Model{"20b3", "NVIDIA A100-SXM-64GB"},
    Model{"20b5", "NVIDIA A100-PCIE-80GB"},
    Model{"20b7", "NVIDIA A30"},
    Model{"20b9", "NVIDIA A30X"},
    Model{"20f1", "NVIDIA A100-PCIE-40GB"},
    Model{"20f3", "NVIDIA A800-SXM4-80GB"},
    Model{"20f5", "NVIDIA A800-PCIE-80GB"},
    Model{"20f6", "NVIDIA A800-PCIE-40GB"},
    Model{"2235", "NVIDIA A40"},
    Model{"2236", "NVIDIA A10"},
    Model{"2321", "NVIDIA H100 NVL"},
    Model{"2329", "NVIDIA H20"},
    Model{"2330", "NVIDIA H100 80GB HBM3"},
    Model{"2331", "NVIDIA H100 PCIe"},
    Model{"2335", "NVIDIA H200"},
    Model{"2339", "NVIDIA H100 SXM 94GB"},
    Model{"233b", "NVIDIA H200 NVL"},
    Model{"233d", "NVIDIA H100 96GB"},
    Model{"2342", "NVIDIA GH200 480GB"},
    Model{"2348", "NVIDIA GH200 144G HBM3e"},
    Model{"25b6", "NVIDIA A2"},
    Model{"26b5", "NVIDIA L40"},
    Model{"26b9", "NVIDIA L40S"},
    Model{"27b8", "NVIDIA L4"},
    Model{"2901", "NVIDIA B200"},
    Model{"2941", "NVIDIA GB200"},
    Model{"2bb1", "NVIDIA RTX PRO 6000 Blackwell Workstation Edition"},
    Model{"2bb3", "NVIDIA RTX PRO 5000 Blackwell"},
    Model{"2bb4", "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition"},
    Model{"2bb5", "NVIDIA RTX PRO 6000 Blackwell Server Edition"},
};

}  // namespace

std::string model_by_id(std::string_view vendor, std::string_view device) {
  if (vendor != "10de") return "";
  const auto found = std::ranges::find(nvidia_models, device, &Model::device);
  return found == nvidia_models.end() ? "" : std::string(found->name);
}

std::string kind_of_model(std::string_view model) {
  std::string kind = lowercase(trim(model));
  constexpr std::string_view vendor = "nvidia ";
  if (kind.starts_with(vendor)) kind.erase(0, vendor.size());
  const auto separates = [](char c) { return c == ' ' || c == '\t' || c == '|' || c == ';'; };
  std::ranges::replace_if(kind, separates, '-');
  return kind;
}

std::string kind_of_card(std::string_view model, std::string_view vendor, std::string_view device) {
  std::string kind = kind_of_model(model);
  if (kind.empty()) kind = kind_of_model(model_by_id(vendor, device));
  return kind.empty() ? cat(vendor, '-', device) : kind;
}

}  // namespace fuse
