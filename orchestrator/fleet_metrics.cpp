#include "orchestrator/fleet_metrics.h"

#include <algorithm>
#include <map>
#include <string>

#include "base/text.h"

namespace fuse {

namespace {

struct Usage {
  double used = 0;
  double total = 0;
};

void set_usage(Metrics& metrics, const std::string& name, MetricLabels labels, const Usage& usage) {
  labels.emplace_back("use", "used");
  metrics.set(name, labels, usage.used);
  labels.back().second = "free";
  metrics.set(name, labels, std::max(0.0, usage.total - usage.used));
}

bool is_in(const std::vector<std::string>& uuids, const std::string& uuid) {
  return std::ranges::find(uuids, uuid) != uuids.end();
}

void measure_devices(const HostInfo& host, Metrics& metrics) {
  std::map<std::string, Usage> cards;
  for (const GpuDevice& device : host.capacity.gpu_devices) {
    Usage& usage = cards[device.model.empty() ? host.capacity.gpu_kind : device.model];
    usage.total += 1;
    if (is_in(host.allocated.gpu_device_uuids, device.uuid)) usage.used += 1;
  }
  if (cards.empty() && host.capacity.gpus > 0) {
    cards[host.capacity.gpu_kind] = {.used = static_cast<double>(host.allocated.gpus),
                                     .total = static_cast<double>(host.capacity.gpus)};
  }
  for (const auto& [kind, usage] : cards) {
    set_usage(metrics, "orchestrator_fleet_gpus", {{"host", host.id}, {"kind", kind}}, usage);
  }
  std::map<std::string, Usage> slices;
  for (const MigInstance& instance : host.capacity.mig_instances) {
    Usage& usage = slices[lowercase(instance.profile)];
    usage.total += 1;
    if (is_in(host.allocated.mig_instance_uuids, instance.uuid)) usage.used += 1;
  }
  for (const auto& [profile, usage] : slices) {
    set_usage(metrics, "orchestrator_fleet_mig_instances",
              {{"host", host.id}, {"profile", profile}}, usage);
  }
}

}  // namespace

std::vector<MetricInfo> orchestrator_metrics() {
  using enum MetricKind;
  return {
      {"orchestrator_http_requests_total", counter, "Answered requests."},
      {"orchestrator_http_request_duration_seconds", histogram, "Time to the answer's head."},
      {"orchestrator_http_requests_in_flight", gauge, "Requests that wait for an answer."},
      {"orchestrator_placement_duration_seconds", histogram, "Time to decide on a host."},
      {"orchestrator_reconcile_duration_seconds", histogram, "Time of a look at the whole fleet."},
      {"orchestrator_reconcile_cycles_total", counter, "Looks at the whole fleet."},
      {"orchestrator_reconcile_orphans_destroyed_total", counter,
       "VMs destroyed that no environment knew."},
      {"orchestrator_reconcile_orphans_failed_total", counter,
       "Such VMs that could not be destroyed at that look."},
      {"orchestrator_reconcile_orphans_dead_lettered_total", counter,
       "Such VMs that were given up; none ever is."},
      {"orchestrator_reconcile_stuck_tasks_suspected_total", counter,
       "Environments seen over their max_runtime for the first time."},
      {"orchestrator_reconcile_stuck_tasks_failed_total", counter,
       "Environments taken down for their max_runtime."},
      {"orchestrator_reconcile_idle_vms_suspected_total", counter,
       "Environments seen over their idle_timeout for the first time."},
      {"orchestrator_reconcile_idle_vms_failed_total", counter,
       "Environments taken down for their idle_timeout."},
      {"orchestrator_reconcile_vms_missing_provider_total", counter,
       "Environments whose VM was gone."},
      {"orchestrator_reconcile_health_checked_vms", gauge, "Environments with a health check."},
      {"orchestrator_reconcile_health_failing_vms", gauge, "Those whose verdict is failing."},
      {"orchestrator_fleet_tracked_vms", gauge, "Environments that are alive."},
      {"orchestrator_fleet_provider_vms", gauge, "VMs that the hosts reported at the last look."},
      {"orchestrator_fleet_hosts", gauge, "Hosts by state; unreachable ones by that."},
      {"orchestrator_fleet_gpus", gauge, "Whole devices by host and kind."},
      {"orchestrator_fleet_mig_instances", gauge, "MIG instances by host and profile."},
      {"orchestrator_fleet_cpus", gauge, "CPUs by host."},
      {"orchestrator_fleet_memory_mebibytes", gauge, "Memory by host."},
  };
}

void measure_fleet(const std::vector<HostInfo>& hosts, Metrics& metrics) {
  for (const std::string_view gauge :
       {"orchestrator_fleet_hosts", "orchestrator_fleet_gpus", "orchestrator_fleet_mig_instances",
        "orchestrator_fleet_cpus", "orchestrator_fleet_memory_mebibytes"}) {
    metrics.clear(gauge);
  }
  std::map<std::string, double> states;
  double environments = 0;
  for (const HostInfo& host : hosts) {
    states[host.reachable ? std::string(to_string(host.state)) : "unreachable"] += 1;
    environments += host.allocated.vm_count;
    const MetricLabels labels = {{"host", host.id}};
    set_usage(metrics, "orchestrator_fleet_cpus", labels,
              {static_cast<double>(host.allocated.cpus), static_cast<double>(host.capacity.cpus)});
    set_usage(
        metrics, "orchestrator_fleet_memory_mebibytes", labels,
        {static_cast<double>(host.allocated.ram_mb), static_cast<double>(host.capacity.ram_mb)});
    measure_devices(host, metrics);
  }
  for (const auto& [state, count] : states) {
    metrics.set("orchestrator_fleet_hosts", {{"state", state}}, count);
  }
  metrics.set("orchestrator_fleet_tracked_vms", {}, environments);
}

}  // namespace fuse
