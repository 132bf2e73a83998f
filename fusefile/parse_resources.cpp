#include <utility>

#include "base/quote.h"
#include "base/text.h"
#include "fusefile/grammar.h"
#include "fusefile/sections.h"
#include "orchestrator/api/types.h"

namespace fuse {

namespace {

using std::chrono::nanoseconds;

constexpr std::string_view no_negative = "must not be negative";
constexpr std::string_view runtime_hint = "write a duration as 12h, or 0 for no limit";
constexpr std::string_view idle_hint = "write 1m or more, or 0 for no limit";
constexpr std::string_view label_hint =
    "write up to 63 letters, digits, '-', '_' and '.', with a letter or digit at both ends";

void check_mig_profile(const Fusefile::Resources& resources, const std::string& profile,
                       Report& report) {
  const std::string path = "resources.gpu_profile";
  if (!is_mig_profile(profile)) {
    report.error(ProblemCode::gpu_profile, path,
                 cat("invalid MIG profile ", in_quotes(profile),
                     " (expected mig-parted form like \"1g.10gb\")"),
                 "write compute slices from 1 to 7, then memory, as in 1g.10gb");
  }
  if (resources.gpu == 0 && !report.blamed("resources.gpu")) {
    report.error(ProblemCode::gpu_profile_alone, path,
                 "requires resources.gpu >= 1 (the count of MIG instances)",
                 "add gpu: 1 for one instance");
  }
  if (is_kind_without_mig(resources.gpu_kind)) {
    report.error(ProblemCode::gpu_without_mig, path,
                 cat(in_quotes(profile), " does not support MIG (gpu_kind ",
                     in_quotes(resources.gpu_kind), ")"),
                 "drop gpu_profile, or name a kind that can be split, as a100 or h100");
  }
}

// All four rules, so that one run shows every mistake.
void check_gpus(const Fusefile::Resources& resources, const std::string& profile, Report& report) {
  if (resources.gpu < 0) {
    report.error(ProblemCode::gpu_count, "resources.gpu", std::string(no_negative),
                 "write how many GPUs, or leave gpu out for none");
  }
  if (!profile.empty()) check_mig_profile(resources, profile, report);
}

std::int32_t read_storage(MapReader& map, Report& report) {
  const auto disk = map.size_mib("disk");
  const auto storage = map.size_mib("storage");
  if (disk && storage && *disk != *storage) {
    report.error_near(
        "resources.storage", ProblemCode::exclusive,
        cat("resources.disk and resources.storage are the same field, but were set "
            "to ",
            in_quotes(map.written("disk")), " and ", in_quotes(map.written("storage"))),
        "keep one of them");
  }
  return disk ? *disk : storage.value_or(0);
}

nanoseconds read_max_runtime(MapReader& map, Report& report) {
  const auto time = map.duration("max_runtime").value_or(nanoseconds(0));
  if (time.count() < 0) {
    report.error(ProblemCode::out_of_range, "resources.max_runtime", std::string(no_negative),
                 std::string(runtime_hint));
  } else if (time.count() > 0 && time < std::chrono::seconds(1)) {
    report.error(ProblemCode::out_of_range, "resources.max_runtime",
                 "must be at least 1s, or 0 for no limit", std::string(runtime_hint));
  }
  return time;
}

nanoseconds read_idle_timeout(MapReader& map, Report& report) {
  const auto time = map.duration("idle_timeout").value_or(nanoseconds(0));
  if (time.count() < 0) {
    report.error(ProblemCode::out_of_range, "resources.idle_timeout", std::string(no_negative),
                 std::string(idle_hint));
  } else if (time.count() > 0 && time < std::chrono::minutes(1)) {
    report.error(ProblemCode::out_of_range, "resources.idle_timeout",
                 "must be at least 1m0s (idle detection runs on the reconcile loop)",
                 std::string(idle_hint));
  }
  return time;
}

}  // namespace

Fusefile::Resources read_resources(const YamlNode* node, Report& report) {
  MapReader map(node, "resources", "resources", report);
  Fusefile::Resources resources;
  resources.cpus = map.whole("cpus").value_or(0);
  resources.memory_mib = map.size_mib("memory").value_or(0);
  resources.storage_mib = read_storage(map, report);
  resources.gpu = map.whole("gpu").value_or(0);
  resources.gpu_kind = map.text_or_empty("gpu_kind");
  const std::string profile = map.text_or_empty("gpu_profile");
  resources.gpu_profile = lowercase(profile);
  resources.region = map.text_or_empty("region");
  resources.max_runtime = read_max_runtime(map, report);
  resources.idle_timeout = read_idle_timeout(map, report);
  if (resources.cpus < 0) {
    report.error(ProblemCode::out_of_range, "resources.cpus", std::string(no_negative),
                 "write how many vCPUs, or leave cpus out for the host's default");
  }
  check_gpus(resources, profile, report);
  return resources;
}

Fusefile::Placement read_placement(const YamlNode* node, Report& report) {
  MapReader map(node, "placement", "placement", report);
  Fusefile::Placement placement;
  placement.host = map.text_or_empty("host");
  for (const YamlField& label : map.members("labels")) {
    std::string value;
    if (!is_null(*label.node)) {
      const auto text = read_text(label, report);
      if (!text) continue;
      value = *text;
    }
    if (!is_placement_label(label.name)) {
      report.error_at(label.key, ProblemCode::bad_value, "placement.labels",
                      cat("invalid label key ", in_quotes(label.name)), std::string(label_hint));
    }
    if (!is_placement_label(value)) {
      report.error(ProblemCode::bad_value, label.path,
                   cat("invalid label value ", in_quotes(value)), std::string(label_hint));
    }
    placement.labels[label.name] = value;
  }
  return placement;
}

}  // namespace fuse
