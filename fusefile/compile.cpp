#include "fusefile/compile.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "fusefile/grammar.h"
#include "fusefile/guest_path.h"
#include "fusefile/limits.h"
#include "fusefile/manifest.h"
#include "fusefile/report.h"
#include "fusefile/startup_script.h"

namespace fuse {

namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

std::int64_t whole_seconds(nanoseconds time) {
  return std::chrono::floor<seconds>(time).count();
}

std::int64_t seconds_rounded_up(nanoseconds time) {
  return std::chrono::ceil<seconds>(time).count();
}

ResourceSpec spec_of(const Fusefile& file) {
  constexpr std::int32_t mib_of_gb = 1024;
  const Fusefile::Resources& resources = file.resources;
  ResourceSpec spec;
  spec.cpus = resources.cpus;
  spec.ram_mb = resources.memory_mib;
  spec.storage_gb =
      resources.storage_mib / mib_of_gb + (resources.storage_mib % mib_of_gb != 0 ? 1 : 0);
  spec.gpus = resources.gpu;
  spec.gpu_kind = resources.gpu_kind;
  spec.gpu_profile = resources.gpu_profile;
  spec.region = resources.region;
  spec.max_runtime_seconds = whole_seconds(resources.max_runtime);
  spec.idle_timeout_seconds = whole_seconds(resources.idle_timeout);
  spec.image = file.image;
  spec.host_id = file.placement.host;
  spec.labels = file.placement.labels;
  return spec;
}

HealthcheckSpec healthcheck_of(const Fusefile::Healthcheck& healthcheck) {
  HealthcheckSpec spec;
  if (healthcheck.http) {
    spec.http = HealthcheckHttp{healthcheck.http->port, healthcheck.http->path};
  }
  spec.exec = healthcheck.exec;
  spec.interval_seconds = seconds_rounded_up(healthcheck.interval);
  spec.timeout_seconds = seconds_rounded_up(healthcheck.timeout);
  spec.retries = healthcheck.retries;
  spec.start_period_seconds = seconds_rounded_up(healthcheck.start_period);
  return spec;
}

// The secrets of a file by name, with the first place of each.
class SecretUses {
 public:
  explicit SecretUses(const Locations& locations) : locations_(locations) {}

  void add(const std::string& name, std::string_view path) {
    if (name.empty()) return;
    const Location where = locations_.find(path);
    const auto [use, is_new] = places.emplace(name, where);
    if (!is_new) use->second = std::min(use->second, where);
  }
  void add(const Fusefile::Env& env, std::string_view path) {
    for (const auto& [name, value] : env) {
      add(value.secret, path_below(path_below(path, name), "secret"));
    }
  }

  std::map<std::string, Location> places{};

 private:
  const Locations& locations_;
};

// "0644" for "644".
std::string four_digits(const std::string& mode) {
  return mode.size() == 3 ? cat("0", mode) : mode;
}

// Phases need the files to be there before the first step, so they go with the
// request; it does not take any below the agent's own folder.
bool fits_phases(const Fusefile& file) {
  return file.startup_timeout.count() == 0 && (!file.build.empty() || file.run) &&
         std::none_of(file.files.begin(), file.files.end(), [&](const auto& entry) {
           return is_at_or_below(resolve_path(file.workspace, entry.path), reserved_dir);
         });
}

// Guest path to bytes, and modes: what the request is to carry.
struct Carried {
  std::map<std::string, std::string> files{};
  std::map<std::string, std::string> modes{};

  void add(const std::string& path, std::string bytes, std::string mode) {
    files[path] = std::move(bytes);
    modes.erase(path);
    if (!mode.empty()) modes[path] = std::move(mode);
  }
};

}  // namespace

TaskId task_id_of(std::string_view flag, const Fusefile& file, const fs::path& fusefile) {
  if (!flag.empty()) return {std::string(flag), TaskIdOrigin::flag};
  if (!file.name.empty()) return {file.name, TaskIdOrigin::name};
  const std::string label = to_dns_label(fusefile.parent_path().filename().native());
  return {label.empty() ? "fuse-env" : label, TaskIdOrigin::directory};
}

std::vector<RequiredSecret> required_secrets_of(const Fusefile& file) {
  SecretUses uses(file.locations);
  for (std::size_t i = 0; i < file.secrets.size(); ++i) {
    uses.add(file.secrets[i], path_item("secrets", i));
  }
  uses.add(file.env, "env");
  for (const auto& [name, service] : file.services) {
    uses.add(service.env, path_below(path_below("services", name), "env"));
  }
  std::vector<RequiredSecret> required;
  for (const auto& [name, where] : uses.places) required.push_back({name, where});
  return required;
}

CompiledFusefile compile(const Fusefile& file, std::string task_id, const LoadedSources& sources) {
  CompiledFusefile compiled;
  compiled.manifest = manifest_of(file);
  for (RequiredSecret& secret : required_secrets_of(file)) {
    compiled.required_secrets.push_back(std::move(secret.name));
  }
  CreateEnvironmentRequest& request = compiled.request;
  request.task_id = std::move(task_id);
  request.spec = spec_of(file);
  request.manifest_inline = base64_encode(compiled.manifest);
  request.startup_script = startup_script(file, sources);
  for (const Fusefile::Expose& entry : file.expose) {
    request.expose.push_back({entry.port, entry.as});
  }
  if (file.healthcheck) request.healthcheck = healthcheck_of(*file.healthcheck);
  if (file.desktop) request.desktop = DesktopSpec{file.desktop->width, file.desktop->height};
  request.startup_script_timeout_seconds = seconds_rounded_up(file.startup_timeout);
  return compiled;
}

Result<CreateEnvironmentRequest> to_send(const Fusefile& file, const CompiledFusefile& compiled,
                                         const LoadedSources& sources,
                                         std::map<std::string, std::string> secrets) {
  CreateEnvironmentRequest request = compiled.request;
  request.secrets = std::move(secrets);
  Carried carried;
  for (const auto& [path, copied] : sources.copied) {
    carried.add(path, copied.bytes, copied.executable ? "0755" : "");
  }
  if (fits_phases(file)) {
    request.phases = phases_of(file);
    for (std::size_t i = 0; i < file.files.size(); ++i) {
      const Fusefile::FileEntry& entry = file.files[i];
      carried.add(resolve_path(file.workspace, entry.path), file_body(file, i, sources),
                  four_digits(entry.mode));
    }
  }
  std::uint64_t total = 0;
  for (const auto& [path, bytes] : carried.files) {
    total += bytes.size();
    request.files[path] = base64_encode(bytes);
  }
  if (total > most_copied_bytes) {
    return Error{ErrorCode::payload_too_large,
                 cat("files: too large: files and copy are ", total, " bytes in all, over the ",
                     most_copied_bytes, " byte limit for one create request")};
  }
  request.file_modes = std::move(carried.modes);
  return request;
}

}  // namespace fuse
