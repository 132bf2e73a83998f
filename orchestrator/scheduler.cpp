#include "orchestrator/scheduler.h"

#include <algorithm>
#include <array>
#include <map>

#include "base/text.h"
#include "orchestrator/gpu_choice.h"

namespace fuse {

namespace {

constexpr std::string_view no_capacity = "no host has sufficient capacity";

std::string arch_of(const HostInfo& host) {
  return canonical_arch(host.arch.empty() ? host.capacity.arch : host.arch);
}

std::vector<std::string> missing_labels(const ResourceSpec& spec, const HostInfo& host) {
  std::vector<std::string> missing;
  for (const auto& [key, value] : spec.labels) {
    const auto found = host.labels.find(key);
    if (found == host.labels.end() || found->second != value) {
      missing.push_back(cat(key, '=', value));
    }
  }
  return missing;
}

// What a host must be to run a spec, and the words for one that is not.
struct Gate {
  bool (*lets_pass)(const ResourceSpec& spec, const HostInfo& host);
  PlacementReason (*refusal)(const ResourceSpec& spec, const HostInfo& host);
};

constexpr Gate pin = {
    [](const ResourceSpec& spec, const HostInfo& host) {
      return spec.host_id.empty() || spec.host_id == host.id;
    },
    [](const ResourceSpec& spec, const HostInfo& host) {
      return PlacementReason{"pin", "is not the host that was asked for", host.id, spec.host_id};
    }};

constexpr Gate active = {
    [](const ResourceSpec& /*spec*/, const HostInfo& host) {
      return host.state == HostState::active;
    },
    [](const ResourceSpec& /*spec*/, const HostInfo& host) {
      const std::string state(to_string(host.state));
      return PlacementReason{"state", cat("is ", state, ", not active"), state, "active"};
    }};

constexpr Gate reachable = {
    [](const ResourceSpec& /*spec*/, const HostInfo& host) { return host.reachable; },
    [](const ResourceSpec& /*spec*/, const HostInfo& /*host*/) {
      return PlacementReason{"unreachable", "does not answer", "unreachable", "reachable"};
    }};

constexpr Gate region = {[](const ResourceSpec& spec, const HostInfo& host) {
                           return spec.region.empty() || spec.region == host.region;
                         },
                         [](const ResourceSpec& spec, const HostInfo& host) {
                           return PlacementReason{"region",
                                                  cat("is in region \"", host.region,
                                                      "\", the spec requires \"", spec.region, '"'),
                                                  host.region, spec.region};
                         }};

constexpr Gate arch = {
    [](const ResourceSpec& spec, const HostInfo& host) {
      return spec.arch.empty() || arch_of(host) == canonical_arch(spec.arch);
    },
    [](const ResourceSpec& spec, const HostInfo& host) {
      const std::string have = arch_of(host);
      const std::string want = canonical_arch(spec.arch);
      return PlacementReason{"arch", cat("is ", have, ", the spec requires ", want), have, want};
    }};

constexpr Gate backend = {
    [](const ResourceSpec& spec, const HostInfo& host) {
      return spec.gpus <= 0 || host.backend == Backend::qemu;
    },
    [](const ResourceSpec& /*spec*/, const HostInfo& host) {
      const std::string have(to_string(host.backend));
      return PlacementReason{"backend",
                             cat("has backend \"", have, "\", gpu environments require \"qemu\""),
                             have, "qemu"};
    }};

constexpr Gate labels = {
    [](const ResourceSpec& spec, const HostInfo& host) {
      return spec.labels.empty() || missing_labels(spec, host).empty();
    },
    [](const ResourceSpec& spec, const HostInfo& host) {
      const std::string missing = join(missing_labels(spec, host), ",");
      return PlacementReason{"label", cat("does not have labels ", missing), "", missing};
    }};

constexpr std::array<Gate, 7> gates = {pin, active, reachable, region, arch, backend, labels};

// An amount that can be used up.
struct Amount {
  std::string_view code;
  std::string_view unit;
  std::int64_t capacity = 0;
  std::int64_t allocated = 0;
  std::int64_t want = 0;

  [[nodiscard]] std::int64_t free() const {
    return std::max<std::int64_t>(0, capacity - allocated);
  }
};

std::array<Amount, 4> amounts(const ResourceSpec& spec, const HostInfo& host) {
  const HostCapacity& all = host.capacity;
  const HostCapacity& used = host.allocated;
  return {{
      {"cpu", " cpus", all.cpus, used.cpus, spec.cpus},
      {"memory", " MiB of memory", all.ram_mb, used.ram_mb, spec.ram_mb},
      {"storage", " GiB of disk", all.storage_gb, used.storage_gb, spec.storage_gb},
      {"slots", " places for a vm", all.vm_count, used.vm_count, 1},
  }};
}

std::vector<PlacementReason> shortages(const ResourceSpec& spec, const HostInfo& host) {
  std::vector<PlacementReason> out;
  for (const Amount& amount : amounts(spec, host)) {
    const std::int64_t free = amount.free();
    if (amount.want <= free) continue;
    out.push_back({std::string(amount.code),
                   cat("has ", free, " of ", amount.want, amount.unit, " free"),
                   std::to_string(free), std::to_string(amount.want)});
  }
  return out;
}

std::int64_t score_of(const HostInfo& host) {
  const std::int64_t free_cpus = std::int64_t{host.capacity.cpus} - host.allocated.cpus;
  const std::int64_t free_ram = std::int64_t{host.capacity.ram_mb} - host.allocated.ram_mb;
  return free_cpus * 10'000 + free_ram;
}

// The verdict on one host.
HostVerdict judge(const ResourceSpec& spec, const FleetHost& host) {
  HostVerdict verdict{.host_id = host.info.id, .gpu_summary = host.info.capacity.gpu_summary};
  for (const Gate& gate : gates) {
    if (gate.lets_pass(spec, host.info)) continue;
    verdict.reasons.push_back(gate.refusal(spec, host.info));
    return verdict;
  }
  verdict.score = score_of(host.info);
  verdict.reasons = shortages(spec, host.info);
  auto devices = choose_gpus(spec, host.info);
  if (auto* refusal = std::get_if<PlacementReason>(&devices)) {
    verdict.reasons.push_back(std::move(*refusal));
  }
  return verdict;
}

std::vector<HostVerdict> judge_all(const ResourceSpec& spec, const Fleet& fleet) {
  std::vector<HostVerdict> verdicts;
  verdicts.reserve(fleet.size());
  for (const FleetHost& host : fleet) verdicts.push_back(judge(spec, host));
  return verdicts;
}

// Whether the host may do, as far as can be told without looking at each device.
bool may_take(const ResourceSpec& spec, const FleetHost& host) {
  for (const Amount& amount : amounts(spec, host.info)) {
    if (amount.want > amount.free()) return false;
  }
  if (spec.gpus > 0) {
    const FreeDevices free = host.free ? *host.free : count_free(host.info);
    if ((spec.gpu_profile.empty() ? free.whole : free.instances) < spec.gpus) return false;
  }
  return std::all_of(gates.begin(), gates.end(),
                     [&](const Gate& gate) { return gate.lets_pass(spec, host.info); });
}

struct Candidate {
  const FleetHost* host = nullptr;
  bool second_choice = false;
  std::int64_t score = 0;  // lower is better
};

// The better first.  Hosts without GPUs' machinery come first for work that needs
// none.
bool better(const Candidate& a, const Candidate& b) {
  if (a.second_choice != b.second_choice) return b.second_choice;
  if (a.score != b.score) return a.score < b.score;
  return a.host->info.id < b.host->info.id;
}

std::vector<Candidate> candidates_for(const ResourceSpec& spec, const Fleet& fleet,
                                      PlacementPolicy policy) {
  std::vector<Candidate> out;
  for (const FleetHost& host : fleet) {
    if (!may_take(spec, host)) continue;
    const std::int64_t score = score_of(host.info);
    out.push_back({.host = &host,
                   .second_choice = spec.gpus <= 0 && host.info.backend == Backend::qemu,
                   .score = policy == PlacementPolicy::spread ? -score : score});
  }
  return out;
}

// The best host whose devices will do.  Only as many are put in order, and have
// their devices looked at, as are needed.
std::optional<Placement> find_place(const ResourceSpec& spec, const Fleet& fleet,
                                    PlacementPolicy policy) {
  auto candidates = candidates_for(spec, fleet, policy);
  const auto worse = [](const Candidate& a, const Candidate& b) { return better(b, a); };
  std::make_heap(candidates.begin(), candidates.end(), worse);
  while (!candidates.empty()) {
    const FleetHost& host = *candidates.front().host;
    auto devices = choose_gpus(spec, host.info);
    if (auto* choice = std::get_if<GpuChoice>(&devices)) {
      return Placement{.host_id = host.info.id,
                       .host_version = host.version,
                       .gpu_device_uuids = std::move(choice->gpu_device_uuids),
                       .mig_instance_uuids = std::move(choice->mig_instance_uuids)};
    }
    std::pop_heap(candidates.begin(), candidates.end(), worse);
    candidates.pop_back();
  }
  return std::nullopt;
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
      !any([&](const HostInfo& host) { return labels.lets_pass(spec, host); })) {
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
  Decision decision{.placement = find_place(spec, fleet, policy)};
  if (!decision.placement) decision.refusal = refusal_of(spec, fleet, judge_all(spec, fleet));
  return decision;
}

Decision explain(const ResourceSpec& spec, const Fleet& fleet, PlacementPolicy policy) {
  Decision decision{.placement = find_place(spec, fleet, policy), .hosts = judge_all(spec, fleet)};
  if (!decision.placement) decision.refusal = refusal_of(spec, fleet, decision.hosts);
  return decision;
}

}  // namespace fuse
