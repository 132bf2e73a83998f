#include "orchestrator/scheduler.h"

#include <algorithm>
#include <array>
#include <map>
#include <tuple>

#include "base/text.h"
#include "orchestrator/gpu_choice.h"

namespace fuse {

namespace {

constexpr std::string_view no_capacity = "no host has sufficient capacity";

// Says why a host cannot run a spec, or nothing when it can.
using Gate = std::optional<PlacementReason> (*)(const ResourceSpec& spec, const HostInfo& host);

std::optional<PlacementReason> is_pinned(const ResourceSpec& spec, const HostInfo& host) {
  if (spec.host_id.empty() || spec.host_id == host.id) return std::nullopt;
  return PlacementReason{"pin", "is not the host that was asked for", host.id, spec.host_id};
}

std::optional<PlacementReason> is_active(const ResourceSpec& /*spec*/, const HostInfo& host) {
  if (host.state == HostState::active) return std::nullopt;
  const std::string state(to_string(host.state));
  return PlacementReason{"state", cat("is ", state, ", not active"), state, "active"};
}

std::optional<PlacementReason> is_reachable(const ResourceSpec& /*spec*/, const HostInfo& host) {
  if (host.reachable) return std::nullopt;
  return PlacementReason{"unreachable", "does not answer", "unreachable", "reachable"};
}

std::optional<PlacementReason> is_in_region(const ResourceSpec& spec, const HostInfo& host) {
  if (spec.region.empty() || spec.region == host.region) return std::nullopt;
  return PlacementReason{
      "region", cat("is in region \"", host.region, "\", the spec requires \"", spec.region, '"'),
      host.region, spec.region};
}

std::optional<PlacementReason> has_arch(const ResourceSpec& spec, const HostInfo& host) {
  if (spec.arch.empty()) return std::nullopt;
  const std::string have = canonical_arch(host.arch.empty() ? host.capacity.arch : host.arch);
  const std::string want = canonical_arch(spec.arch);
  if (have == want) return std::nullopt;
  return PlacementReason{"arch", cat("is ", have, ", the spec requires ", want), have, want};
}

std::optional<PlacementReason> has_backend(const ResourceSpec& spec, const HostInfo& host) {
  if (spec.gpus <= 0 || host.backend == Backend::qemu) return std::nullopt;
  const std::string backend(to_string(host.backend));
  return PlacementReason{"backend",
                         cat("has backend \"", backend, "\", gpu environments require \"qemu\""),
                         backend, "qemu"};
}

std::optional<PlacementReason> has_labels(const ResourceSpec& spec, const HostInfo& host) {
  std::vector<std::string> missing;
  for (const auto& [key, value] : spec.labels) {
    const auto found = host.labels.find(key);
    if (found == host.labels.end() || found->second != value) {
      missing.push_back(cat(key, '=', value));
    }
  }
  if (missing.empty()) return std::nullopt;
  return PlacementReason{"label", cat("does not have labels ", join(missing, ",")), "",
                         join(missing, ",")};
}

constexpr std::array<Gate, 7> gates = {is_pinned, is_active,   is_reachable, is_in_region,
                                       has_arch,  has_backend, has_labels};

// An amount that can be used up.
struct Amount {
  std::string_view code;
  std::string_view unit;
  std::int64_t capacity = 0;
  std::int64_t allocated = 0;
  std::int64_t want = 0;
};

std::vector<PlacementReason> shortages(const ResourceSpec& spec, const HostInfo& host) {
  const HostCapacity& all = host.capacity;
  const HostCapacity& used = host.allocated;
  const std::array<Amount, 4> amounts = {{
      {"cpu", " cpus", all.cpus, used.cpus, spec.cpus},
      {"memory", " MiB of memory", all.ram_mb, used.ram_mb, spec.ram_mb},
      {"storage", " GiB of disk", all.storage_gb, used.storage_gb, spec.storage_gb},
      {"slots", " places for a vm", all.vm_count, used.vm_count, 1},
  }};
  std::vector<PlacementReason> out;
  for (const Amount& amount : amounts) {
    const std::int64_t free = std::max<std::int64_t>(0, amount.capacity - amount.allocated);
    if (amount.want <= free) continue;
    out.push_back({std::string(amount.code),
                   cat("has ", free, " of ", amount.want, amount.unit, " free"),
                   std::to_string(free), std::to_string(amount.want)});
  }
  return out;
}

struct Candidate {
  const FleetHost* host = nullptr;
  GpuChoice devices{};
  std::int64_t score = 0;
};

// The verdict on one host, and what it would be given there.
HostVerdict judge(const ResourceSpec& spec, const FleetHost& host, Candidate& candidate) {
  HostVerdict verdict{.host_id = host.info.id, .gpu_summary = host.info.capacity.gpu_summary};
  for (const Gate gate : gates) {
    if (auto refusal = gate(spec, host.info)) {
      verdict.reasons.push_back(*std::move(refusal));
      return verdict;
    }
  }
  verdict.reasons = shortages(spec, host.info);
  auto devices = choose_gpus(spec, host.info);
  if (auto* refusal = std::get_if<PlacementReason>(&devices)) {
    verdict.reasons.push_back(std::move(*refusal));
  } else {
    candidate.devices = std::get<GpuChoice>(std::move(devices));
  }
  const std::int64_t free_cpus = std::int64_t{host.info.capacity.cpus} - host.info.allocated.cpus;
  const std::int64_t free_ram =
      std::int64_t{host.info.capacity.ram_mb} - host.info.allocated.ram_mb;
  verdict.score = free_cpus * 10'000 + free_ram;
  candidate.host = &host;
  candidate.score = verdict.score;
  return verdict;
}

// Hosts without GPUs' machinery come first for work that needs none.
const Candidate& pick(const ResourceSpec& spec, const std::vector<Candidate>& candidates,
                      PlacementPolicy policy) {
  const auto rank = [&](const Candidate& candidate) {
    const bool second_choice = spec.gpus <= 0 && candidate.host->info.backend == Backend::qemu;
    const std::int64_t score =
        policy == PlacementPolicy::spread ? -candidate.score : candidate.score;
    return std::make_tuple(second_choice, score, std::string_view(candidate.host->info.id));
  };
  return *std::min_element(
      candidates.begin(), candidates.end(),
      [&](const Candidate& a, const Candidate& b) { return rank(a) < rank(b); });
}

std::string size_words(const ResourceSpec& spec) {
  return cat(spec.cpus, "CPU/", spec.ram_mb, "MB/", spec.storage_gb, "GB");
}

std::string label_words(const ResourceSpec& spec) {
  std::vector<std::string> pairs;
  for (const auto& [key, value] : spec.labels) pairs.push_back(cat(key, '=', value));
  return join(pairs, ",");
}

std::string refusal_words(const HostVerdict& verdict) {
  std::vector<std::string> parts;
  for (const PlacementReason& refusal : verdict.reasons) parts.push_back(refusal.text);
  return join(parts, ", ");
}

bool schedulable(const HostInfo& host) {
  return host.state == HostState::active && host.reachable;
}

// The stock sentence for a host that was asked for by name.
std::string pinned_message(const ResourceSpec& spec, const HostVerdict& verdict) {
  const std::string host =
      cat("pinned host cannot take this environment: host \"", verdict.host_id, "\" ");
  const std::string& gate = verdict.reasons.front().code;
  const bool about_amounts = gate != "state" && gate != "unreachable" && gate != "region" &&
                             gate != "arch" && gate != "backend" && gate != "label";
  if (!about_amounts) return cat(host, refusal_words(verdict));
  const std::string gpus = spec.gpus > 0 ? cat(" + ", gpu_words(spec)) : std::string();
  return cat(host, "does not fit ", size_words(spec), gpus, ": ", refusal_words(verdict));
}

// The stock sentence, by what is wrong with the fleet as a whole.
std::string fleet_message(const ResourceSpec& spec, const Fleet& fleet) {
  const auto schedulable_hosts = std::count_if(
      fleet.begin(), fleet.end(), [](const FleetHost& host) { return schedulable(host.info); });
  if (spec.gpus > 0 && schedulable_hosts == 0) {
    return cat(no_capacity, ": gpu workloads require a registered gpu host");
  }
  if (fleet.empty()) return "no hosts registered: placement requires registered hosts";
  const auto any = [&](auto test) {
    return std::any_of(fleet.begin(), fleet.end(), [&](const FleetHost& host) {
      return schedulable(host.info) && test(host.info);
    });
  };
  if (spec.gpus > 0 && !any([&](const HostInfo& host) { return serves_gpus(spec, host); })) {
    return cat(no_capacity, ": need ", gpu_words(spec), ", and none of ", schedulable_hosts,
               " schedulable hosts serves gpus");
  }
  if (!spec.labels.empty() && schedulable_hosts > 0 &&
      !any([&](const HostInfo& host) { return !has_labels(spec, host); })) {
    const std::string gpus = spec.gpus > 0 ? cat(" (for ", gpu_words(spec), ')') : std::string();
    return cat("no host matches the requested placement labels: ", label_words(spec),
               " matched none of ", schedulable_hosts, " schedulable hosts", gpus);
  }
  const std::string gpus = spec.gpus > 0 ? cat(" + ", gpu_words(spec)) : std::string();
  return cat(no_capacity, ": need ", size_words(spec), gpus, ", no eligible host fits");
}

constexpr std::array<std::string_view, 11> gate_order = {
    "pin",   "state", "unreachable", "region",  "arch", "backend",
    "label", "cpu",   "memory",      "storage", "slots"};
constexpr std::size_t first_amount = 7;

// How far a host came: the place of its first refusal among all gates.
std::size_t progress(const HostVerdict& verdict) {
  const auto found = std::find(gate_order.begin(), gate_order.end(), verdict.reasons.front().code);
  return static_cast<std::size_t>(found - gate_order.begin());
}

const HostVerdict& nearest(const std::vector<HostVerdict>& hosts) {
  return *std::max_element(
      hosts.begin(), hosts.end(), [](const HostVerdict& a, const HostVerdict& b) {
        const auto near_a = progress(a);
        const auto near_b = progress(b);
        return near_a != near_b ? near_a < near_b : a.reasons.size() > b.reasons.size();
      });
}

// How many hosts failed at which gate, and what the nearest one lacks.  Names
// are left out where no GPU was asked for: such a refusal never contains "gpu",
// which a host's name may.
std::string summary(const ResourceSpec& spec, const std::vector<HostVerdict>& hosts) {
  if (hosts.empty()) return "";
  std::map<std::string, int> counts;
  for (const HostVerdict& host : hosts) ++counts[host.reasons.front().code];
  std::vector<std::string> parts;
  parts.reserve(counts.size());
  for (const auto& [gate, count] : counts) {
    parts.push_back(cat(count, count == 1 ? " host fails at " : " hosts fail at ", gate));
  }
  std::string out = cat("; ", join(parts, ", "));
  const HostVerdict& best = nearest(hosts);
  if (spec.gpus > 0) {
    out += cat("; nearest: host \"", best.host_id, "\" ", refusal_words(best));
  } else if (progress(best) >= first_amount) {
    out += cat("; the nearest host ", refusal_words(best));
  }
  return out;
}

void add_probe_summaries(const std::vector<HostVerdict>& hosts, Error& error) {
  for (const HostVerdict& host : hosts) {
    if (host.gpu_summary.empty()) continue;
    error.message += cat("; host \"", host.host_id, "\": ", host.gpu_summary);
  }
}

constexpr std::size_t most_hosts_in_details = 50;

Error refusal_of(const ResourceSpec& spec, const Fleet& fleet,
                 const std::vector<HostVerdict>& hosts) {
  Error error{ErrorCode::unavailable, "", {{"reason", "placement"}}};
  const auto pinned = std::find_if(hosts.begin(), hosts.end(), [&](const HostVerdict& host) {
    return host.host_id == spec.host_id;
  });
  std::vector<HostVerdict> told = hosts;
  if (spec.host_id.empty()) {
    error.message = cat(fleet_message(spec, fleet), summary(spec, hosts));
  } else if (pinned == hosts.end()) {
    return {ErrorCode::not_found,
            cat("spec.host_id: host \"", spec.host_id, "\" is not registered")};
  } else {
    error.message = pinned_message(spec, *pinned);
    told = {*pinned};
  }
  if (spec.gpus > 0) add_probe_summaries(told, error);
  for (const HostVerdict& host : told) {
    if (error.details.size() > most_hosts_in_details) break;
    error.details[cat("host.", host.host_id)] =
        cat(host.reasons.front().code, ": ", refusal_words(host));
  }
  return error;
}

}  // namespace

std::string canonical_arch(const std::string& arch) {
  if (arch.empty() || arch == "x86_64") return "amd64";
  return arch == "aarch64" ? "arm64" : arch;
}

Decision place(const ResourceSpec& spec, const Fleet& fleet, PlacementPolicy policy) {
  Decision decision;
  std::vector<Candidate> candidates;
  for (const FleetHost& host : fleet) {
    Candidate candidate;
    decision.hosts.push_back(judge(spec, host, candidate));
    if (decision.hosts.back().reasons.empty()) candidates.push_back(std::move(candidate));
  }
  if (candidates.empty()) {
    decision.refusal = refusal_of(spec, fleet, decision.hosts);
    return decision;
  }
  const Candidate& best = pick(spec, candidates, policy);
  decision.placement = Placement{.host_id = best.host->info.id,
                                 .host_version = best.host->version,
                                 .gpu_device_uuids = best.devices.gpu_device_uuids,
                                 .mig_instance_uuids = best.devices.mig_instance_uuids};
  return decision;
}

}  // namespace fuse
