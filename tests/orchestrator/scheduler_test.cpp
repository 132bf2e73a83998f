#include "orchestrator/scheduler.h"

#include "base/text.h"
#include "tests/catch.h"

namespace fuse {
namespace {

using Uuids = std::vector<std::string>;

FleetHost host(const std::string& id) {
  FleetHost out;
  out.info = {.id = id, .backend = Backend::qemu};
  out.info.capacity = {.cpus = 8, .ram_mb = 8192, .storage_gb = 100, .vm_count = 4};
  return out;
}

FleetHost gpu_host(const std::string& id, int cards) {
  FleetHost out = host(id);
  out.info.capacity.gpus = cards;
  for (int i = 0; i < cards; ++i) {
    out.info.capacity.gpu_devices.push_back(
        {.uuid = cat("GPU-", i), .model = "NVIDIA A100-SXM4-40GB"});
  }
  return out;
}

ResourceSpec small() {
  return {.cpus = 2, .ram_mb = 1024, .storage_gb = 10};
}
ResourceSpec with_gpus(int count, const std::string& kind = "", const std::string& profile = "") {
  ResourceSpec spec = small();
  spec.gpus = count;
  spec.gpu_kind = kind;
  spec.gpu_profile = profile;
  return spec;
}

std::string refusal(const ResourceSpec& spec, const Fleet& fleet) {
  const Decision decision = place(spec, fleet);
  REQUIRE_FALSE(decision.placement.has_value());
  return decision.refusal.message;
}

std::string first_gate(const ResourceSpec& spec, const FleetHost& one) {
  const Decision decision = explain(spec, {one});
  REQUIRE(decision.hosts.size() == 1);
  return decision.hosts[0].reasons.empty() ? "" : decision.hosts[0].reasons[0].code;
}

bool begins(const std::string& text, const std::string& with) {
  return text.rfind(with, 0) == 0;
}

TEST_CASE("spread takes the emptiest host, binpack the fullest that fits, ties go by id") {
  FleetHost a = host("a");
  FleetHost b = host("b");
  FleetHost c = host("c");
  b.info.allocated.cpus = 4;
  CHECK(place(small(), {a, b, c}).placement->host_id == "a");
  CHECK(place(small(), {a, b, c}, PlacementPolicy::binpack).placement->host_id == "b");
  a.info.allocated.cpus = 1;
  CHECK(place(small(), {a, b, c}).placement->host_id == "c");
}

TEST_CASE("each gate refuses what it is for") {
  ResourceSpec spec = small();
  FleetHost one = host("h");
  SECTION("state") {
    one.info.state = HostState::cordoned;
    CHECK(first_gate(spec, one) == "state");
  }
  SECTION("unreachable") {
    one.info.reachable = false;
    CHECK(first_gate(spec, one) == "unreachable");
  }
  SECTION("region") {
    spec.region = "eu";
    one.info.region = "EU";
    CHECK(first_gate(spec, one) == "region");
  }
  SECTION("arch") {
    spec.arch = "aarch64";
    CHECK(first_gate(spec, one) == "arch");
    one.info.arch = "arm64";
    CHECK(first_gate(spec, one).empty());
    spec.arch = "x86_64";
    one.info.arch = "";
    CHECK(first_gate(spec, one).empty());
  }
  SECTION("backend") {
    one.info.backend = Backend::firecracker;
    CHECK(first_gate(with_gpus(1), one) == "backend");
  }
  SECTION("label") {
    spec.labels = {{"a", "b"}};
    one.info.labels = {{"a", "c"}};
    CHECK(first_gate(spec, one) == "label");
  }
  SECTION("amounts") {
    one.info.allocated.cpus = 7;
    CHECK(first_gate(spec, one) == "cpu");
    one.info.allocated = {.ram_mb = 8000};
    CHECK(first_gate(spec, one) == "memory");
    one.info.allocated = {.storage_gb = 91};
    CHECK(first_gate(spec, one) == "storage");
    one.info.allocated = {.vm_count = 4};
    CHECK(first_gate(spec, one) == "slots");
    one.info.allocated = {.cpus = 6, .ram_mb = 7168, .storage_gb = 90, .vm_count = 3};
    CHECK(first_gate(spec, one).empty());
  }
}

TEST_CASE("every amount that is short is told, with what there is and what is wanted") {
  FleetHost one = host("h");
  one.info.allocated = {.cpus = 7, .ram_mb = 8000};
  const auto verdict = explain(small(), {one}).hosts.at(0);
  REQUIRE(verdict.reasons.size() == 2);
  CHECK(verdict.reasons[0].text == "has 1 of 2 cpus free");
  CHECK(verdict.reasons[0].have == "1");
  CHECK(verdict.reasons[0].want == "2");
  CHECK(verdict.reasons[1].text == "has 192 of 1024 MiB of memory free");
}

TEST_CASE("the stock sentences stand at the beginning of a refusal") {
  CHECK(begins(refusal(small(), {}), "no hosts registered: placement requires registered hosts"));
  CHECK(refusal(with_gpus(1), {}) ==
        "no host has sufficient capacity: gpu workloads require a registered gpu host");
  CHECK(begins(refusal(with_gpus(1, "a100"), {host("a"), host("b"), host("c")}),
               "no host has sufficient capacity: need 1 gpu of kind \"a100\", and none of 3 "
               "schedulable hosts serves gpus"));
  CHECK(begins(refusal(with_gpus(2, "", "1g.10gb"), {host("a")}),
               "no host has sufficient capacity: need 2 1g.10gb mig instances, and none of 1 "
               "schedulable hosts serves gpus"));
  ResourceSpec labelled = small();
  labelled.labels = {{"a", "b"}, {"c", "d"}};
  CHECK(begins(refusal(labelled, {host("a"), host("b"), host("c")}),
               "no host matches the requested placement labels: a=b,c=d matched none of 3 "
               "schedulable hosts"));
  FleetHost full = host("full");
  full.info.allocated.cpus = 8;
  CHECK(refusal(small(), {full}) ==
        "no host has sufficient capacity: need 2CPU/1024MB/10GB, no eligible host fits; 1 host "
        "fails at cpu; the nearest host has 0 of 2 cpus free");
  FleetHost used = gpu_host("g", 1);
  used.info.allocated.gpu_device_uuids = {"GPU-0"};
  CHECK(refusal(with_gpus(1), {used}) ==
        "no host has sufficient capacity: need 2CPU/1024MB/10GB + 1 gpu, no eligible host fits; 1 "
        "host fails at gpu-count; nearest: host \"g\" has 0 of 1 gpus free");
}

TEST_CASE("a refusal without gpus does not speak of any, whatever hosts are called") {
  FleetHost full = host("gpu-1");
  full.info.allocated.cpus = 8;
  full.info.capacity.gpu_summary = "2 gpus bound to nvidia";
  CHECK(refusal(small(), {full}).find("gpu") == std::string::npos);
}

TEST_CASE("a host that was asked for by name says what keeps it from it") {
  ResourceSpec spec = with_gpus(1);
  spec.host_id = "h";
  FleetHost one = host("h");
  const std::string begin = "pinned host cannot take this environment: host \"h\" ";
  SECTION("state") {
    one.info.state = HostState::cordoned;
    CHECK(refusal(spec, {one}) == begin + "is cordoned, not active");
  }
  SECTION("region") {
    spec.region = "y";
    one.info.region = "x";
    CHECK(refusal(spec, {one}) == begin + "is in region \"x\", the spec requires \"y\"");
  }
  SECTION("arch") {
    spec.arch = "arm64";
    CHECK(refusal(spec, {one}) == begin + "is amd64, the spec requires arm64");
  }
  SECTION("backend") {
    one.info.backend = Backend::firecracker;
    CHECK(refusal(spec, {one}) ==
          begin + "has backend \"firecracker\", gpu environments require \"qemu\"");
  }
  SECTION("label") {
    spec.labels = {{"k", "v"}};
    CHECK(refusal(spec, {one}) == begin + "does not have labels k=v");
  }
  SECTION("gpus") {
    CHECK(refusal(spec, {one}) == begin + "does not fit 2CPU/1024MB/10GB + 1 gpu: has no gpus");
  }
  SECTION("another host does not matter") {
    CHECK(begins(refusal(spec, {gpu_host("g", 1), one}), begin));
  }
  SECTION("unknown") {
    const Decision decision = place(spec, {host("g")});
    CHECK(decision.refusal.code == ErrorCode::not_found);
    CHECK(decision.refusal.message == "spec.host_id: host \"h\" is not registered");
  }
}

TEST_CASE("what was looked for and found stands in the refusal of a gpu") {
  FleetHost one = host("local");
  one.info.capacity.gpu_summary = "1 NVIDIA device, bound to nvidia, not to vfio-pci";
  const Decision decision = place(with_gpus(1), {one});
  CHECK(decision.refusal.code == ErrorCode::unavailable);
  CHECK(decision.refusal.details.at("reason") == "placement");
  CHECK(decision.refusal.details.at("host.local") == "gpu-count: has no gpus");
  CHECK(decision.refusal.message.find(
            "; host \"local\": 1 NVIDIA device, bound to nvidia, not to vfio-pci") !=
        std::string::npos);
}

TEST_CASE("work without gpus goes to a qemu host only when no other can take it") {
  FleetHost small_one = host("z");
  small_one.info.backend = Backend::firecracker;
  small_one.info.capacity.cpus = 2;
  FleetHost big = gpu_host("a", 8);
  big.info.capacity.cpus = 96;
  CHECK(place(small(), {big, small_one}).placement->host_id == "z");
  small_one.info.allocated.cpus = 1;
  CHECK(place(small(), {big, small_one}).placement->host_id == "a");
}

TEST_CASE("a kind is part of a model's name, in any case; a card in mig mode is no whole one") {
  FleetHost one = gpu_host("g", 2);
  one.info.capacity.gpu_devices[1].model = "Tesla T4";
  CHECK(place(with_gpus(1, "a100"), {one}).placement->gpu_device_uuids == Uuids{"GPU-0"});
  CHECK(place(with_gpus(1, "t4"), {one}).placement->gpu_device_uuids == Uuids{"GPU-1"});
  CHECK(first_gate(with_gpus(1, "h100"), one) == "gpu-kind");
  one.info.capacity.gpu_devices[0].mig_mode = "Enabled";
  CHECK(first_gate(with_gpus(1, "a100"), one) == "gpu-kind");
  CHECK(first_gate(with_gpus(2), one) == "gpu-count");
}

TEST_CASE("a host that only counts its gpus compares kinds for equality") {
  FleetHost one = host("g");
  one.info.capacity.gpus = 2;
  one.info.capacity.gpu_kind = "A100";
  CHECK(place(with_gpus(2, "a100"), {one}).placement->gpu_device_uuids.empty());
  CHECK(first_gate(with_gpus(1, "a10"), one) == "gpu-kind");
  one.info.allocated.gpus = 1;
  CHECK(first_gate(with_gpus(2, "a100"), one) == "gpu-count");
}

TEST_CASE("whole iommu groups make the exact number when any set of them can") {
  FleetHost one = gpu_host("g", 3);
  auto& devices = one.info.capacity.gpu_devices;
  devices[0].iommu_group = "10";
  devices[1].iommu_group = "11";
  devices[2].iommu_group = "11";
  CHECK(place(with_gpus(1), {one}).placement->gpu_device_uuids == Uuids{"GPU-0"});
  CHECK(place(with_gpus(2), {one}).placement->gpu_device_uuids == Uuids{"GPU-1", "GPU-2"});
  CHECK(place(with_gpus(3), {one}).placement->gpu_device_uuids.size() == 3);
  one.info.allocated.gpu_device_uuids = {"GPU-0"};
  CHECK(first_gate(with_gpus(1), one) == "gpu-group");
}

TEST_CASE("several gpus come from one numa node, a single one from the node with least to spare") {
  FleetHost one = gpu_host("g", 5);
  for (std::size_t i = 0; i < 5; ++i) {
    one.info.capacity.gpu_devices[i].numa_node = i < 2 ? 0 : 1;
  }
  CHECK(place(with_gpus(1), {one}).placement->gpu_device_uuids == Uuids{"GPU-0"});
  CHECK(place(with_gpus(3), {one}).placement->gpu_device_uuids == Uuids{"GPU-2", "GPU-3", "GPU-4"});
  CHECK(place(with_gpus(4), {one}).placement->gpu_device_uuids.size() == 4);
}

TEST_CASE("fewer gpus than there are may be declared, to keep the rest") {
  FleetHost one = gpu_host("g", 2);
  one.info.capacity.gpus = 1;
  CHECK(first_gate(with_gpus(2), one) == "gpu-limit");
  one.info.allocated.gpus = 1;
  one.info.allocated.gpu_device_uuids = {"GPU-0"};
  CHECK(first_gate(with_gpus(1), one) == "gpu-limit");
}

FleetHost mig_host() {
  FleetHost out = gpu_host("m", 2);
  for (auto& device : out.info.capacity.gpu_devices) device.mig_capable = true;
  out.info.capacity.mig_instances = {
      {"MIG-1", "1g.10gb", "", "GPU-0"},
      {"MIG-2", "1g.10gb", "", "GPU-0"},
      {"MIG-3", "1g.10gb", "", "GPU-1"},
      {"MIG-4", "3g.40gb", "", "GPU-1"},
  };
  return out;
}

TEST_CASE("mig instances are bound by uuid, by profile and kind, from cards in use first") {
  FleetHost one = mig_host();
  CHECK(place(with_gpus(1, "a100", "3g.40gb"), {one}).placement->mig_instance_uuids ==
        Uuids{"MIG-4"});
  CHECK(place(with_gpus(1, "", "1g.10gb"), {one}).placement->mig_instance_uuids == Uuids{"MIG-3"});
  CHECK(place(with_gpus(2, "", "1g.10gb"), {one}).placement->mig_instance_uuids ==
        Uuids{"MIG-1", "MIG-2"});
  one.info.allocated.mig_instance_uuids = {"MIG-1"};
  CHECK(place(with_gpus(1, "", "1g.10gb"), {one}).placement->mig_instance_uuids == Uuids{"MIG-2"});
  CHECK(first_gate(with_gpus(3, "", "1g.10gb"), one) == "mig-busy");
  CHECK(first_gate(with_gpus(1, "h100", "1g.10gb"), one) == "gpu-kind");
  one.info.capacity.gpu_devices[1].mig_capable = false;
  CHECK(first_gate(with_gpus(1, "", "3g.40gb"), one) == "mig-capable");
}

TEST_CASE("a profile with the graphics extension serves where there is no plain one") {
  FleetHost one = mig_host();
  one.info.capacity.mig_instances = {{"MIG-1", "1g.24gb+gfx", "", ""}};
  CHECK(place(with_gpus(1, "", "1g.24gb"), {one}).placement->mig_instance_uuids == Uuids{"MIG-1"});
  one.info.capacity.mig_instances.push_back({"MIG-2", "1g.24gb", "", ""});
  one.info.allocated.mig_instance_uuids = {"MIG-2"};
  CHECK(first_gate(with_gpus(1, "", "1g.24gb"), one) == "mig-busy");
}

TEST_CASE("declared profiles are counted, on hosts with a card that could have them") {
  FleetHost one = host("m");
  one.info.capacity.mig_profiles = {{"1g.10gb", 2}};
  one.info.capacity.gpu_kind = "a100";
  CHECK(place(with_gpus(2, "A100", "1g.10gb"), {one}).placement->mig_instance_uuids.empty());
  CHECK(first_gate(with_gpus(1, "h100", "1g.10gb"), one) == "mig-capable");
  CHECK(first_gate(with_gpus(1, "", "2g.20gb"), one) == "mig-profile");
  one.info.allocated.mig_profiles = {{"1g.10gb", 1}};
  CHECK(first_gate(with_gpus(2, "", "1g.10gb"), one) == "mig-busy");
  one.info.capacity.gpu_devices = {{.uuid = "GPU-0", .model = "A100", .mig_capable = false}};
  CHECK(first_gate(with_gpus(1, "", "1g.10gb"), one) == "mig-capable");
}

TEST_CASE("whole devices and mig instances are separate pools") {
  FleetHost one = mig_host();
  one.info.allocated.mig_instance_uuids = {"MIG-1", "MIG-2", "MIG-3", "MIG-4"};
  CHECK(place(with_gpus(2), {one}).placement.has_value());
  one.info.allocated = {.gpus = 2, .gpu_device_uuids = {"GPU-0", "GPU-1"}};
  CHECK(place(with_gpus(3, "", "1g.10gb"), {one}).placement.has_value());
}

}  // namespace
}  // namespace fuse
