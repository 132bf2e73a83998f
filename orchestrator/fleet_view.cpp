#include "orchestrator/fleet_view.h"

#include "base/text.h"

namespace fuse {

namespace {

// Three missed polls of ten seconds.
constexpr std::chrono::seconds silence{30};

Result<FleetHost> read_host(StoreTx& tx, const std::string& id) {
  auto row = tx.hosts.by_id(id);
  if (!row) return row.error();
  if (!*row) return Error{ErrorCode::not_found, cat("host not found: ", id)};
  auto allocated = allocated_on(tx, id);
  if (!allocated) return allocated.error();
  FleetHost host{.info = (*row)->info, .version = (*row)->version};
  host.info.allocated = *std::move(allocated);
  return host;
}

}  // namespace

Result<HostCapacity> allocated_on(StoreTx& tx, const std::string& host_id) {
  const auto environments = tx.environments.live_on(host_id);
  if (!environments) return environments.error();
  HostCapacity used;
  for (const EnvironmentRow& row : *environments) {
    const ResourceSpec& spec = row.environment.spec;
    used.cpus += spec.cpus;
    used.ram_mb += spec.ram_mb;
    used.storage_gb += spec.storage_gb;
    used.vm_count += 1;
    if (spec.gpus > 0 && spec.gpu_profile.empty()) used.gpus += spec.gpus;
    if (spec.gpus > 0 && !spec.gpu_profile.empty()) {
      used.mig_profiles[spec.gpu_profile] += spec.gpus;
    }
  }
  const auto bindings = tx.bindings.on_host(host_id);
  if (!bindings) return bindings.error();
  for (const BindingRow& binding : *bindings) {
    auto& uuids = binding.kind == DeviceKind::mig ? used.mig_instance_uuids : used.gpu_device_uuids;
    uuids.push_back(binding.device_uuid);
  }
  return used;
}

// An agent in this process is as reachable as we are.
bool FleetView::reachable(const std::string& id, WallTime seen) const {
  return directory_.is_local(id) || clock_.wall() - seen < silence;
}

Result<Fleet> FleetView::look() {
  const auto known = known_.with([](const auto& map) { return map; });
  auto fleet = transact<Fleet>(store_, [&](StoreTx& tx) -> Result<Fleet> {
    const auto marks = tx.hosts.marks();
    if (!marks) return marks.error();
    Fleet out;
    for (const HostTable::Mark& mark : *marks) {
      const auto found = known.find(mark.id);
      if (found != known.end() && found->second.version == mark.version) {
        out.push_back(found->second);
      } else {
        auto host = read_host(tx, mark.id);
        if (!host) return host.error();
        out.push_back(*std::move(host));
      }
      out.back().info.reachable = reachable(mark.id, mark.seen);
      out.back().info.last_seen = to_rfc3339(mark.seen);
    }
    return out;
  });
  if (!fleet) return fleet.error();
  known_.with([&](auto& map) {
    map.clear();
    for (const FleetHost& host : *fleet) map[host.info.id] = host;
  });
  return fleet;
}

}  // namespace fuse
