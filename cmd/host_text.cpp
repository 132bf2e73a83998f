#include "cmd/host_text.h"

#include <algorithm>
#include <ostream>

#include "base/text.h"
#include "base/units.h"
#include "cmd/output.h"

namespace fuse::cmd {

namespace {

std::string memory_text(std::int64_t mebibytes) {
  return human_bytes(static_cast<std::uint64_t>(std::max<std::int64_t>(0, mebibytes)) << 20U);
}

bool is_in(const std::vector<std::string>& uuids, const std::string& uuid) {
  return std::ranges::find(uuids, uuid) != uuids.end();
}

std::string whole_text(const HostInfo& host) {
  const auto listed = static_cast<std::int32_t>(host.capacity.gpu_devices.size());
  const std::int32_t all = std::max(host.capacity.gpus, listed);
  if (all == 0) return "";
  const std::int32_t offered = host.capacity.gpus > 0 ? std::min(host.capacity.gpus, all) : all;
  const std::int32_t free = std::max(0, offered - host.allocated.gpus);
  const std::string kept = offered < all ? cat(", ", all - offered, " kept back") : std::string();
  const std::string& kind = host.capacity.gpu_kind;
  return cat(all, ' ', kind.empty() ? "gpu" : printable(kind), ", ", free, " free", kept);
}

std::string slice_text(const HostInfo& host) {
  std::vector<std::string> parts;
  for (const auto& [profile, count] : host.capacity.mig_profiles) {
    const auto used = host.allocated.mig_profiles.find(profile);
    const std::int32_t taken = used == host.allocated.mig_profiles.end() ? 0 : used->second;
    parts.push_back(cat(count, ' ', printable(profile), ", ", std::max(0, count - taken), " free"));
  }
  return join(parts, "; ");
}

// Which environment holds a device; "free" when none does.
std::string holder_text(const std::vector<Environment>& environments, const std::string& uuid,
                        bool held) {
  for (const Environment& environment : environments) {
    if (is_in(environment.gpu_device_uuids, uuid) || is_in(environment.mig_instance_uuids, uuid)) {
      return environment.id;
    }
  }
  return held ? "in use" : "free";
}

void print_devices(std::ostream& out, const HostInfo& host,
                   const std::vector<Environment>& environments) {
  if (!host.capacity.gpu_devices.empty()) {
    out << "\nGPUs\n";
    Table table({"UUID", "MODEL", "ADDRESS", "GROUP", "MEMORY", "MIG", "HELD BY"});
    for (const GpuDevice& device : host.capacity.gpu_devices) {
      table.add({or_dash(device.uuid), or_dash(device.model), or_dash(device.pci_bus_id),
                 or_dash(device.iommu_group), memory_text(device.memory_mb),
                 or_dash(device.mig_mode),
                 holder_text(environments, device.uuid,
                             is_in(host.allocated.gpu_device_uuids, device.uuid))});
    }
    table.print(out, false);
  }
  if (host.capacity.mig_instances.empty()) return;
  out << "\nMIG instances\n";
  Table table({"UUID", "PROFILE", "CARD", "HELD BY"});
  for (const MigInstance& instance : host.capacity.mig_instances) {
    table.add({or_dash(instance.uuid), or_dash(instance.profile), or_dash(instance.parent_gpu_uuid),
               holder_text(environments, instance.uuid,
                           is_in(host.allocated.mig_instance_uuids, instance.uuid))});
  }
  table.print(out, false);
}

}  // namespace

std::string usage_text(std::int64_t used, std::int64_t total) {
  return cat(used, '/', total);
}

std::string state_text(const HostInfo& host) {
  const std::string state(to_string(host.state));
  return host.reachable ? state : cat("unreachable, ", state);
}

std::string gpu_text(const HostInfo& host) {
  const std::string whole = whole_text(host);
  const std::string slices = slice_text(host);
  if (whole.empty() && slices.empty()) return "-";
  return whole.empty() || slices.empty() ? cat(whole, slices) : cat(whole, "; ", slices);
}

void print_hosts(std::ostream& out, const std::vector<HostInfo>& hosts, WallTime now,
                 bool bold_head) {
  Table table({"ID", "STATE", "BACKEND", "CPUS", "MEMORY", "VMS", "GPUS", "HEARD"});
  for (const HostInfo& host : hosts) {
    table.add({printable(host.id), state_text(host), std::string(to_string(host.backend)),
               usage_text(host.allocated.cpus, host.capacity.cpus),
               cat(memory_text(host.allocated.ram_mb), " / ", memory_text(host.capacity.ram_mb)),
               usage_text(host.allocated.vm_count, host.capacity.vm_count), gpu_text(host),
               cat(age_of(host.last_seen, now), " ago")});
  }
  table.print(out, bold_head);
}

void print_host(std::ostream& out, const HostInfo& host,
                const std::vector<Environment>& environments, WallTime now) {
  const auto row = [&out](std::string_view name, const std::string& value) {
    if (!value.empty()) out << padded(name, 9) << "  " << value << '\n';
  };
  std::vector<std::string> labels;
  for (const auto& [key, value] : host.labels) labels.push_back(cat(key, '=', value));
  row("id", printable(host.id));
  row("state", state_text(host));
  row("agent", printable(host.url));
  row("backend", std::string(to_string(host.backend)));
  row("region", printable(host.region));
  row("arch", printable(host.arch));
  row("labels", printable(join(labels, ", ")));
  row("cpus", cat(usage_text(host.allocated.cpus, host.capacity.cpus), " used"));
  row("memory",
      cat(memory_text(host.allocated.ram_mb), " of ", memory_text(host.capacity.ram_mb), " used"));
  row("disk", cat(host.allocated.storage_gb, " of ", host.capacity.storage_gb, " GiB used"));
  row("vms", cat(usage_text(host.allocated.vm_count, host.capacity.vm_count), " used"));
  row("gpus", gpu_text(host));
  row("heard", cat(age_of(host.last_seen, now), " ago"));
  print_devices(out, host, environments);
  if (environments.empty()) return;
  out << "\nEnvironments\n";
  Table table({"ID", "STATE", "AGE"});
  for (const Environment& environment : environments) {
    table.add({printable(environment.id), std::string(to_string(environment.state)),
               age_of(environment.created_at, now)});
  }
  table.print(out, false);
}

}  // namespace fuse::cmd
