#include <algorithm>
#include <random>
#include <set>
#include <tuple>

#include "base/text.h"
#include "orchestrator/gpu_choice.h"
#include "orchestrator/scheduler.h"
#include "tests/catch.h"

// The scheduler against a model that tries everything: whether a host can take
// a spec is asked by going through every set of its devices.
namespace fuse {
namespace {

class Draw {
 public:
  explicit Draw(unsigned seed) : engine_(seed) {}
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(engine_); }
  bool one_in(int n) { return below(n) == 0; }
  template <class T>
  T of(const std::vector<T>& values) {
    return values[static_cast<std::size_t>(below(static_cast<int>(values.size())))];
  }

 private:
  std::mt19937 engine_;
};

const std::vector<std::string> models = {"NVIDIA A100-SXM4-40GB", "Tesla T4", "NVIDIA H100"};
const std::vector<std::string> profiles = {"1g.10gb", "3g.40gb"};

void add_cards(Draw& draw, HostInfo& host) {
  const int cards = draw.below(6);
  for (int i = 0; i < cards; ++i) {
    GpuDevice device{.uuid = cat(host.id, "-GPU-", i), .model = draw.of(models)};
    if (draw.one_in(2)) device.iommu_group = cat(draw.below(4));
    if (draw.one_in(2)) device.numa_node = draw.below(2);
    device.mig_capable = !draw.one_in(4);
    if (draw.one_in(6)) device.mig_mode = "Enabled";
    host.capacity.gpu_devices.push_back(device);
    if (draw.one_in(3)) host.allocated.gpu_device_uuids.push_back(device.uuid);
  }
  host.capacity.gpus = draw.one_in(4) ? draw.below(cards + 1) : cards;
  host.allocated.gpus = static_cast<std::int32_t>(host.allocated.gpu_device_uuids.size());
  const int instances = draw.below(5);
  for (int i = 0; i < instances; ++i) {
    MigInstance instance{.uuid = cat(host.id, "-MIG-", i), .profile = draw.of(profiles)};
    if (draw.one_in(2)) instance.kind = draw.of(models);
    if (cards > 0) instance.parent_gpu_uuid = cat(host.id, "-GPU-", draw.below(cards));
    host.capacity.mig_instances.push_back(instance);
    if (draw.one_in(3)) host.allocated.mig_instance_uuids.push_back(instance.uuid);
  }
}

FleetHost random_host(Draw& draw, const std::string& id) {
  FleetHost out{.version = draw.below(100)};
  out.info = {.id = id, .backend = draw.one_in(4) ? Backend::firecracker : Backend::qemu};
  out.info.region = draw.of<std::string>({"eu", "eu", "us"});
  out.info.arch = draw.of<std::string>({"", "amd64", "amd64", "arm64"});
  if (!draw.one_in(4)) out.info.labels = {{"team", draw.of<std::string>({"a", "a", "b"})}};
  if (draw.one_in(8)) out.info.state = HostState::cordoned;
  out.info.reachable = !draw.one_in(8);
  out.info.capacity = {.cpus = 4, .ram_mb = 4096, .storage_gb = 50, .vm_count = 2};
  if (draw.one_in(2)) {
    out.info.allocated = {.cpus = draw.below(5),
                          .ram_mb = 1024 * draw.below(5),
                          .storage_gb = 10 * draw.below(6),
                          .vm_count = draw.below(3)};
  }
  if (out.info.backend == Backend::qemu) add_cards(draw, out.info);
  return out;
}

ResourceSpec random_spec(Draw& draw) {
  ResourceSpec spec{.cpus = 1 + draw.below(3), .ram_mb = 1024 * (1 + draw.below(2))};
  spec.storage_gb = draw.below(20);
  if (draw.one_in(4)) spec.region = "eu";
  if (draw.one_in(4)) spec.arch = "amd64";
  if (draw.one_in(6)) spec.labels = {{"team", "a"}};
  if (!draw.one_in(3)) {
    spec.gpus = draw.one_in(2) ? 1 : 1 + draw.below(3);
    if (draw.one_in(3)) spec.gpu_kind = draw.of<std::string>({"a100", "t4", "h100"});
    if (draw.one_in(3)) spec.gpu_profile = draw.of(profiles);
  }
  return spec;
}

bool has(const std::vector<std::string>& list, const std::string& one) {
  return std::find(list.begin(), list.end(), one) != list.end();
}

bool may_use_instance(const HostInfo& host, const ResourceSpec& spec, const MigInstance& instance) {
  if (has(host.allocated.mig_instance_uuids, instance.uuid)) return false;
  if (instance.profile != spec.gpu_profile) return false;
  std::string kind = instance.kind;
  for (const GpuDevice& card : host.capacity.gpu_devices) {
    if (card.uuid != instance.parent_gpu_uuid) continue;
    if (!card.mig_capable) return false;
    if (kind.empty()) kind = card.model;
  }
  return spec.gpu_kind.empty() || kind.empty() || contains_ignoring_case(kind, spec.gpu_kind);
}

// Whether exactly these devices may be handed out together.
bool may_use_devices(const HostInfo& host, const ResourceSpec& spec,
                     const std::set<std::string>& chosen) {
  std::set<std::string> groups;
  for (const GpuDevice& device : host.capacity.gpu_devices) {
    if (chosen.count(device.uuid) == 0) continue;
    if (has(host.allocated.gpu_device_uuids, device.uuid) || device.mig_mode == "Enabled") {
      return false;
    }
    if (!spec.gpu_kind.empty() && !contains_ignoring_case(device.model, spec.gpu_kind)) {
      return false;
    }
    if (!device.iommu_group.empty()) groups.insert(device.iommu_group);
  }
  // A group goes as a whole.
  return std::all_of(host.capacity.gpu_devices.begin(), host.capacity.gpu_devices.end(),
                     [&](const GpuDevice& device) {
                       return chosen.count(device.uuid) != 0 ||
                              groups.count(device.iommu_group) == 0;
                     });
}

bool model_serves_gpus(const HostInfo& host, const ResourceSpec& spec) {
  if (spec.gpus == 0) return true;
  if (!spec.gpu_profile.empty()) {
    return std::count_if(host.capacity.mig_instances.begin(), host.capacity.mig_instances.end(),
                         [&](const MigInstance& one) {
                           return may_use_instance(host, spec, one);
                         }) >= spec.gpus;
  }
  const auto& devices = host.capacity.gpu_devices;
  if (devices.empty()) return false;
  const auto limit = host.capacity.gpus;
  const bool limited = limit > 0 && limit < static_cast<std::int32_t>(devices.size());
  if (limited && host.allocated.gpus + spec.gpus > limit) return false;
  for (unsigned bits = 0; bits < (1U << devices.size()); ++bits) {
    std::set<std::string> chosen;
    for (std::size_t i = 0; i < devices.size(); ++i) {
      if ((bits >> i & 1U) != 0) chosen.insert(devices[i].uuid);
    }
    if (chosen.size() != static_cast<std::size_t>(spec.gpus)) continue;
    if (may_use_devices(host, spec, chosen)) return true;
  }
  return false;
}

bool model_fits(const HostInfo& host, const ResourceSpec& spec) {
  const auto arch = [](const std::string& name) { return name.empty() ? "amd64" : name; };
  if (host.state != HostState::active || !host.reachable) return false;
  if (!spec.region.empty() && spec.region != host.region) return false;
  if (!spec.arch.empty() && arch(spec.arch) != arch(host.arch)) return false;
  if (spec.gpus > 0 && host.backend != Backend::qemu) return false;
  for (const auto& label : spec.labels) {
    if (host.labels.count(label.first) == 0 || host.labels.at(label.first) != label.second) {
      return false;
    }
  }
  const auto& all = host.capacity;
  const auto& used = host.allocated;
  // Nothing wanted fits also where more is in use than there is.
  const auto enough = [](int capacity, int taken, int want) {
    return want == 0 || taken + want <= capacity;
  };
  return enough(all.cpus, used.cpus, spec.cpus) && enough(all.ram_mb, used.ram_mb, spec.ram_mb) &&
         enough(all.storage_gb, used.storage_gb, spec.storage_gb) &&
         enough(all.vm_count, used.vm_count, 1) && model_serves_gpus(host, spec);
}

const HostInfo& host_named(const Fleet& fleet, const std::string& id) {
  return std::find_if(fleet.begin(), fleet.end(),
                      [&](const FleetHost& h) { return h.info.id == id; })
      ->info;
}

// That the devices of a placement are what was asked for, and free.
bool devices_are_right(const HostInfo& host, const ResourceSpec& spec, const Placement& placement) {
  const std::set<std::string> gpus(placement.gpu_device_uuids.begin(),
                                   placement.gpu_device_uuids.end());
  const std::set<std::string> instances(placement.mig_instance_uuids.begin(),
                                        placement.mig_instance_uuids.end());
  const auto wanted = static_cast<std::size_t>(spec.gpus);
  if (spec.gpu_profile.empty()) {
    if (!instances.empty() || gpus.size() != wanted) return false;
    return may_use_devices(host, spec, gpus);
  }
  if (!gpus.empty() || instances.size() != wanted) return false;
  return std::count_if(host.capacity.mig_instances.begin(), host.capacity.mig_instances.end(),
                       [&](const MigInstance& one) {
                         return instances.count(one.uuid) != 0 && may_use_instance(host, spec, one);
                       }) == spec.gpus;
}

void check_same(const Decision& placed, const Decision& explained) {
  CHECK(placed.refusal.message == explained.refusal.message);
  REQUIRE(placed.placement.has_value() == explained.placement.has_value());
  if (!placed.placement) return;
  CHECK(placed.placement->host_id == explained.placement->host_id);
  CHECK(placed.placement->gpu_device_uuids == explained.placement->gpu_device_uuids);
  CHECK(placed.placement->mig_instance_uuids == explained.placement->mig_instance_uuids);
}

// That no host that could take it as well comes before the one that was taken.
void check_best(const ResourceSpec& spec, const Fleet& fleet, PlacementPolicy policy,
                const Placement& placement) {
  const auto rank = [&](const HostInfo& host) {
    const bool keeps_gpus_idle = spec.gpus == 0 && host.backend == Backend::qemu;
    const int free = (host.capacity.cpus - host.allocated.cpus) * 10'000 + host.capacity.ram_mb -
                     host.allocated.ram_mb;
    return std::tuple(keeps_gpus_idle, policy == PlacementPolicy::spread ? -free : free, host.id);
  };
  const auto taken = rank(host_named(fleet, placement.host_id));
  for (const FleetHost& host : fleet) {
    if (model_fits(host.info, spec)) CHECK(taken <= rank(host.info));
  }
}

TEST_CASE("placing agrees with trying everything, on random fleets") {
  int placed = 0;
  int refused = 0;
  for (unsigned seed = 0; seed < 6000; ++seed) {
    Draw draw(seed);
    Fleet fleet;
    const int hosts = draw.below(5);
    for (int i = 0; i < hosts; ++i) fleet.push_back(random_host(draw, cat("h", i)));
    const ResourceSpec spec = random_spec(draw);
    const auto policy = draw.one_in(2) ? PlacementPolicy::spread : PlacementPolicy::binpack;
    const Decision decision = explain(spec, fleet, policy);
    INFO("seed " << seed);
    if (draw.one_in(2)) {
      for (FleetHost& host : fleet) host.free = count_free(host.info);
    }
    check_same(place(spec, fleet, policy), decision);
    if (decision.placement) check_best(spec, fleet, policy, *decision.placement);
    bool any = false;
    for (const HostVerdict& verdict : decision.hosts) {
      const bool fits = model_fits(host_named(fleet, verdict.host_id), spec);
      CHECK(verdict.reasons.empty() == fits);
      any = any || fits;
    }
    REQUIRE(decision.placement.has_value() == any);
    if (any) {
      ++placed;
      const HostInfo& host = host_named(fleet, decision.placement->host_id);
      CHECK(model_fits(host, spec));
      CHECK(devices_are_right(host, spec, *decision.placement));
    } else {
      ++refused;
      INFO(decision.refusal.message);
      CHECK_FALSE(decision.refusal.message.empty());
      const bool speaks_of_gpus = decision.refusal.message.find("gpu") != std::string::npos ||
                                  decision.refusal.message.find("mig") != std::string::npos;
      // The stock text for a pinned host is the exception.
      if (spec.gpus == 0) CHECK_FALSE(speaks_of_gpus);
      if (spec.gpus > 0 && spec.host_id.empty()) CHECK(speaks_of_gpus);
    }
  }
  // Neither side was only seen by accident.
  CHECK(placed > 1000);
  CHECK(refused > 1000);
}

TEST_CASE("placing one after another never hands out a device twice") {
  for (unsigned seed = 0; seed < 300; ++seed) {
    Draw draw(seed);
    Fleet fleet;
    for (int i = 0; i < 3; ++i) {
      fleet.push_back(random_host(draw, cat("h", i)));
      fleet.back().info.allocated = {};
      fleet.back().info.capacity.vm_count = 20;
      fleet.back().info.capacity.cpus = 100;
      fleet.back().info.capacity.ram_mb = 1 << 20;
    }
    std::set<std::string> given;
    for (int i = 0; i < 12; ++i) {
      const Decision decision = place(random_spec(draw), fleet);
      if (!decision.placement) continue;
      for (FleetHost& host : fleet) {
        if (host.info.id != decision.placement->host_id) continue;
        for (const std::string& uuid : decision.placement->gpu_device_uuids) {
          INFO("seed " << seed << " device " << uuid);
          CHECK(given.insert(uuid).second);
          host.info.allocated.gpu_device_uuids.push_back(uuid);
          ++host.info.allocated.gpus;
        }
        for (const std::string& uuid : decision.placement->mig_instance_uuids) {
          CHECK(given.insert(uuid).second);
          host.info.allocated.mig_instance_uuids.push_back(uuid);
        }
      }
    }
  }
}

}  // namespace
}  // namespace fuse
