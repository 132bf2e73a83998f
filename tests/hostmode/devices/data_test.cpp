#include <algorithm>
#include <cstdlib>
#include <functional>
#include <map>

#include "base/text.h"
#include "hostmode/devices/card_verdict.h"
#include "hostmode/devices/kernel_log.h"
#include "hostmode/devices/pci_address.h"
#include "hostmode/mig/profile.h"
#include "hostmode/mig/smi_mig.h"
#include "hostmode/mig/vgpu_types.h"
#include "tests/catch.h"
#include "tests/hostmode/devices/sim_box.h"

namespace fuse {
namespace {

using Texts = std::vector<std::string>;

// What the reader of such a file makes of it, in a line that can be compared.
using Digest = std::function<std::string(const std::string& text)>;

template <class T, class Words>
std::string listed(const Result<std::vector<T>>& entries, const Words& words) {
  if (!entries) return cat("refused: ", entries.error().message);
  Texts out;
  for (const T& entry : *entries) out.push_back(words(entry));
  return join(out, ", ");
}

std::string numbers(const std::vector<int>& values) {
  Texts out;
  for (const int value : values) out.push_back(cat(value));
  return join(out, "/");
}

std::string profiles(const std::string& text) {
  return listed(parse_gi_profiles(text), [](const GiProfile& profile) {
    return cat(profile.gpu, ':', profile.name, ' ', profile.id, ' ', profile.free, '/',
               profile.total, ' ', profile.memory_gib, ' ', profile.multiprocessors);
  });
}

std::string placements(const std::string& text) {
  return listed(parse_gi_placements(text), [](const GiPlacements& place) {
    return cat(place.profile, '@', numbers(place.starts), 'x', place.size);
  });
}

std::string instances(const std::string& text) {
  return listed(parse_gpu_instances(text), [](const GpuInstance& instance) {
    return cat(instance.gpu, ':', instance.name, ' ', instance.profile, " gi", instance.id, " @",
               instance.start, 'x', instance.size);
  });
}

std::string inside(const std::string& text) {
  return listed(parse_compute_instances(text), [](const ComputeInstance& instance) {
    return cat("gi", instance.instance, " ci", instance.id, ' ', instance.name);
  });
}

std::string creation(const std::string& text) {
  const CreationReport report = parse_creation(text);
  return cat("made ", numbers(report.gpu_instances), " with ", numbers(report.with_compute), ", ",
             report.complaints.size(), " complaints");
}

std::string listing(const std::string& text) {
  Texts out;
  for (const ListedGpu& gpu : parse_listing(text)) {
    Texts devices;
    for (const MigDevice& device : gpu.devices) devices.push_back(device.profile);
    out.push_back(devices.empty() ? cat(gpu.index, ' ', gpu.model)
                                  : cat(gpu.index, ' ', gpu.model, " [", join(devices, " "), "]"));
  }
  return join(out, ", ");
}

std::string queried(const std::string& text) {
  Texts out;
  for (const QueriedGpu& gpu : parse_mig_query(text)) {
    for (const MigDeviceIds& ids : gpu.devices) {
      out.push_back(
          cat(gpu.address, ' ', ids.number, "=gi", ids.gpu_instance, "ci", ids.compute_instance));
    }
  }
  return join(out, ", ");
}

std::string csv(const std::string& text) {
  const SmiCsv table = parse_smi_csv(text);
  Texts out;
  for (const SmiGpu& gpu : smi_gpus(table)) {
    out.push_back(cat(gpu.address, ' ', gpu.model, ' ', gpu.memory_mb, " mig=", gpu.mig_current,
                      gpu.complaint.empty() ? "" : " sick"));
  }
  return cat(join(out, ", "), out.empty() ? "" : "; ", table.rows.size(), " rows, ",
             table.remarks.size(), " remarks");
}

std::string creatable(const std::string& text) {
  Texts out;
  const auto types = parse_creatable_types(text);
  for (const VgpuType& type : types) {
    const auto profile = profile_of_vgpu(type.name);
    if (profile) {
      out.push_back(
          cat(type.id, '=', profile->slices, "g.", profile->gigabytes, "gb", profile->attributes));
    }
  }
  return cat(types.size(), " types", out.empty() ? "" : ": ", join(out, " "));
}

std::string resource(const std::string& text) {
  Texts out;
  for (const PciBar& bar : parse_pci_resource(text)) {
    out.push_back(cat(bar.index, ' ', bar.size >> 10U, "K", bar.prefetchable ? " pref" : "",
                      bar.memory ? "" : " ports"));
  }
  return join(out, ", ");
}

std::string xids(const std::string& text) {
  Texts out;
  for (const XidEvent& event : parse_xids(text)) out.push_back(cat(event.slot, ' ', event.xid));
  return join(out, ", ");
}

// "... CLASS [0300]: NAME [10de:2504] ..." as a function of a simulated machine.
std::optional<SimFunction> function_of(const std::string& line, std::string& group) {
  SimFunction function;
  Texts words;
  for (const std::string& word : split(line, ' ')) {
    if (!trim(word).empty()) words.emplace_back(trim(word));
  }
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (equal_ignoring_case(words[i], "group") && i + 1 < words.size()) {
      group = words[i + 1].substr(0, words[i + 1].find(':'));
    }
    if (const auto address = pci_address(words[i]); address && function.address.empty()) {
      function.address = *address;
    }
  }
  const std::size_t code = line.find("]: ");
  if (function.address.empty() || code == std::string::npos || code < 4) return std::nullopt;
  function.code = line.substr(code - 4, 4) + "00";
  for (std::size_t open = line.find('[', code); open != std::string::npos;
       open = line.find('[', open + 1)) {
    if (open + 10 >= line.size() || line[open + 5] != ':' || line[open + 10] != ']') continue;
    function.vendor = line.substr(open + 1, 4);
    function.device = line.substr(open + 6, 4);
  }
  function.group = group;
  return function;
}

// The groups with NVIDIA cards of a machine with these functions.
std::string machine(const std::string& text) {
  SimBox box;
  std::string group;
  for (const std::string& line : split(text, '\n')) {
    if (const auto function = function_of(line, group)) box.add(*function);
  }
  Texts out;
  const GpuScan scan = scan_gpus(box, {"10de"});
  for (const GpuGroupScan& found : scan.groups) {
    Texts endpoints;
    for (const PciDevice* const device : found.endpoints()) endpoints.push_back(device->address);
    const auto foreign = std::ranges::count(found.members, MemberKind::foreign, &GroupMember::kind);
    out.push_back(cat(found.number, found.number.empty() ? "" : ": ", join(endpoints, "+"),
                      foreign > 0 ? cat(" and ", foreign, " foreign") : ""));
  }
  return cat(join(out, ", "), scan.switches.empty() ? "" : "; ",
             scan.switches.empty() ? "" : cat(scan.switches.size(), " switches"));
}

std::string refused_names(const std::string& text) {
  Texts taken;
  for (const std::string& line : split(text, '\n')) {
    if (!line.empty() && parse_profile(line)) taken.push_back(line);
  }
  return join(taken, ", ");
}

// Readers by how a file's name begins; the first that fits.
const std::vector<std::pair<std::string, Digest>>& readers() {
  static const std::vector<std::pair<std::string, Digest>> all = {
      {"mig-lgipp", placements}, {"mig-lgip", profiles},
      {"mig-lgi", instances},    {"mig-none", instances},
      {"mig-lci-", inside},      {"mig-cgi", creation},
      {"mig-destroy", creation}, {"mig-profile", refused_names},
      {"smi-L", listing},        {"smi-q-", queried},
      {"query-", csv},           {"sysfs-creatable", creatable},
      {"sysfs-pci", resource},   {"dmesg", xids},
      {"errors-dmesg", xids},    {"iommu", machine},
      {"lspci-nn", machine}};
  return all;
}

std::string digest(const fs::path& file) {
  const std::string name = file.filename().native();
  for (const auto& [prefix, reader] : readers()) {
    if (name.starts_with(prefix)) return reader(read_text(file));
  }
  return "no reader";
}

using Expected = std::map<std::string, std::string>;

const Expected own = {
    {"mig-lgip-a100-80.txt",
     "2:1g.10gb 19 5/7 9.50 14, 2:1g.10gb+me 20 1/1 9.50 14, 2:3g.40gb 9 1/2 39.25 42, "
     "3:7g.80gb 0 1/1 79.00 98"},
    {"mig-lgip-none.txt", ""},
    {"mig-lgipp-a100-80.txt", "19@0/1/2/3/4/5/6x1, 9@0/4x4, 0@0x8"},
    {"mig-lgi-mixed.txt", "2:1g.10gb+me 20 gi13 @6x1, 2:3g.40gb 9 gi2 @0x4"},
    {"mig-lgi-none.txt", ""},
    {"mig-lci-mixed.txt", "gi13 ci0 1g.10gb+me, gi2 ci1 1c.3g.40gb"},
    {"mig-cgi-half-made.txt", "made 2/13 with 2, 2 complaints"},
    {"smi-L-mixed.txt", "0 NVIDIA RTX A4000, 1 NVIDIA A100 80GB PCIe [1c.3g.40gb 1g.10gb+me]"},
    {"smi-q-mig.txt", "0000:41:00.0 0=gi2ci1, 0000:41:00.0 1=gi13ci0"},
    {"query-gpu-mixed.csv",
     "0000:01:00.0 NVIDIA RTX A4000 16376 mig=, 0000:41:00.0 NVIDIA A100 80GB PCIe 81920 "
     "mig=Enabled; 2 rows, 0 remarks"},
    {"query-gpu-lost.csv",
     "0000:01:00.0 NVIDIA RTX A4000 16376 mig=, 0000:41:00.0  0 mig= sick; 2 rows, 1 remarks"},
    {"sysfs-creatable_vgpu_types-mixed.txt", "4 types: 1061=1g.10gb 1062=1g.10gb+me 1063=3g.40gb"},
    {"sysfs-pci-resource-a100.txt", "0 16384K, 1 134217728K pref, 3 32768K pref, 5 0K ports"},
    {"dmesg-xid-79.txt", "0000:41:00 79"},
    {"iommu-unsafe.txt", "7: 0000:02:00.0+0000:02:00.1 and 1 foreign, 8: 0000:04:00.0"},
};

// Outputs of many machines, of which only some are at hand.
const Expected further = {
    {"mig-cgi-7x1g-created.txt", "made 13/11/12/7/8/9/10 with 13/11/12/7/8/9/10, 0 complaints"},
    {"mig-cgi-gh200-1g24-ciprofile7.txt", "made 5/3/4 with 5/3/4, 0 complaints"},
    {"mig-cgi-insufficient.txt", "made  with , 2 complaints"},
    {"mig-cgi-mixed-created-rtxpro6000.txt", "made 1/5/6 with 1/5/6, 0 complaints"},
    {"mig-destroy-order.txt", "made  with , 2 complaints"},
    {"mig-lci-a100-40-partial-compute.txt",
     "gi11 ci0 1g.5gb, gi12 ci0 1g.5gb, gi6 ci0 1c.2g.10gb, gi1 ci0 1c.3g.20gb"},
    {"mig-lci-single-gi13.txt", "gi13 ci0 1g.5gb"},
    {"mig-lgi-a30-three.txt", "0:1g.6gb 14 gi3 @0x1, 0:1g.6gb 14 gi4 @1x1, 0:2g.12gb 5 gi2 @2x2"},
    {"mig-lgi-fragmented.txt",
     "3:1g.10gb 19 gi7 @0x1, 3:1g.10gb 19 gi8 @1x1, 3:1g.10gb 19 gi12 @5x1"},
    {"mig-lgi-h100nvl-2x3g.txt", "0:3g.47gb 9 gi1 @0x4, 0:3g.47gb 9 gi2 @4x4"},
    {"mig-lgi-rtxpro6000-mixed.txt",
     "0:1g.24gb 14 gi5 @6x3, 0:1g.24gb 14 gi6 @9x3, 0:2g.48gb 5 gi1 @0x6"},
    {"mig-lgip-a100-40-r510-free-zero.txt",
     "0:1g.5gb 19 0/7 4.75 14, 0:1g.5gb+me 20 0/1 4.75 14, 0:2g.10gb 14 0/3 9.75 28, "
     "0:3g.20gb 9 0/2 19.62 42, 0:4g.20gb 5 0/1 19.62 56, 0:7g.40gb 0 0/1 39.50 98"},
    {"mig-lgipp-a30.txt", "14@0/1/2/3x1, 21@0/1/2/3x1, 5@0/2x2, 6@0/2x2, 0@0x4"},
    {"mig-lgipp-h100-80.txt",
     "19@0/1/2/3/4/5/6x1, 20@0/1/2/3/4/5/6x1, 15@0/2/4/6x2, 14@0/2/4x2, 9@0/4x4, 5@0x4, 0@0x8"},
    {"mig-none-found.txt", ""},
    {"mig-profile-names-invalid.txt", ""},
    {"smi-L-h100-80-mixed.txt", "0 NVIDIA H100 80GB HBM3 [3g.40gb 2g.20gb 1g.10gb 1g.10gb]"},
    {"smi-L-h200-shared-gpu-instance.txt",
     "0 NVIDIA H200 [1c.3g.71gb 2c.3g.71gb 2g.35gb 1g.18gb 1g.18gb]"},
    {"smi-q-h200-mig.txt",
     "0000:83:00.0 0=gi2ci0, 0000:83:00.0 1=gi2ci1, 0000:83:00.0 2=gi3ci0, "
     "0000:83:00.0 3=gi9ci0, 0000:83:00.0 4=gi10ci0"},
    {"query-compute-apps-empty.csv", "0 rows, 0 remarks"},
    {"query-gpu-one-lost.txt", "0 rows, 1 remarks"},
    {"query-gpu-requires-reset.csv", "1 rows, 0 remarks"},
    {"query-pci-mig-enabled-esxi.csv", "0000:0f:00.0  0 mig=Enabled; 1 rows, 0 remarks"},
    {"sysfs-creatable_vgpu_types-h200-excerpt.txt", "2 types: 1414=1g.18gb"},
    {"sysfs-creatable_vgpu_types-l40s.txt", "23 types"},
    {"sysfs-pci-resource-a2-vf.txt", "0 256K, 1 2097152K pref, 3 32768K pref"},
    {"dmesg-xid-119.txt", "0000:9b:00 119"},
    {"errors-dmesg-vfio.txt", ""},
    {"iommu-amd-b450-unsafe-group.txt", "12: 0000:05:00.0+0000:05:00.1 and 4 foreign"},
    {"iommu-amd-tu104-dummy-bridge-in-group.txt",
     "2: 0000:09:00.0+0000:09:00.1+0000:09:00.2+0000:09:00.3"},
    {"iommu-amd-x570-full.txt", "30: 0000:0b:00.0+0000:0b:00.1, 31: 0000:0c:00.0+0000:0c:00.1"},
    {"iommu-intel-e3-bridge-unordered.txt", "1: 0000:01:00.0+0000:01:00.1"},
    {"lspci-nn-a100-sxm4-azure-domains.txt",
     "0001:00:00.0, 0002:00:00.0, 0003:00:00.0, 0004:00:00.0, 000b:00:00.0, 000c:00:00.0, "
     "000d:00:00.0, 000e:00:00.0; 6 switches"},
    {"lspci-nn-a10-in-qemu-guest.txt", "0000:06:00.0"},
};

void compare(const fs::path& folder, const Expected& expected) {
  for (const auto& [name, words] : expected) {
    INFO(name);
    REQUIRE(fs::exists(folder / name));
    CHECK(digest(folder / name) == words);
  }
}

TEST_CASE("what tools print is read: the data of this tree") {
  const fs::path folder = fs::path(FUSE_SOURCE_DIR) / "tests/hostmode/data";
  compare(folder, own);
  for (const auto& entry : fs::directory_iterator(folder)) {
    INFO(entry.path().filename().native());
    CHECK(own.contains(entry.path().filename().native()));
  }
}

TEST_CASE("what tools print is read: further data") {
  const char* const data = std::getenv("FUSE_TEST_DATA");
  const fs::path folder = fs::path(data == nullptr ? "" : data) / "fixtures";
  if (data == nullptr || !fs::is_directory(folder)) {
    SKIP("FUSE_TEST_DATA names no folder with fixtures");
  }
  compare(folder, further);
  // Whatever has a reader is read without a refusal.
  std::size_t read = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() == ".md") continue;
    const std::string words = digest(entry.path());
    INFO(entry.path().filename().native());
    CHECK_FALSE(words.starts_with("refused"));
    if (words != "no reader") ++read;
  }
  CHECK(read > own.size());
}

}  // namespace
}  // namespace fuse
