#include "orchestrator/validate.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/text.h"
#include "base/units.h"
#include "orchestrator/manifest.h"

namespace fuse {

namespace {

constexpr std::size_t most_file_bytes = 524'288;
constexpr std::size_t most_secrets = 256;
constexpr std::size_t most_secret_name = 256;
constexpr std::size_t most_secret_value = 65'536;
constexpr std::size_t most_secret_bytes = 1'048'576;

Error invalid(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message)};
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool cannot_do_mig(std::string_view kind) {
  constexpr std::array<std::string_view, 11> kinds = {"v100", "t4",    "p100", "p40", "k80", "rtx",
                                                      "gtx",  "titan", "l4",   "l40", "l40s"};
  return std::any_of(kinds.begin(), kinds.end(),
                     [&](std::string_view known) { return contains_ignoring_case(kind, known); });
}

Result<void> check_gpus(const ResourceSpec& spec) {
  std::vector<std::string> problems;
  if (spec.gpus < 0) problems.emplace_back("spec.gpus must not be negative");
  if (!spec.gpu_profile.empty()) {
    if (!is_mig_profile(spec.gpu_profile)) {
      problems.push_back(cat("spec.gpu_profile: invalid MIG profile \"", spec.gpu_profile,
                             "\" (expected mig-parted form like \"1g.10gb\")"));
    }
    if (spec.gpus == 0) {
      problems.emplace_back(
          "spec.gpu_profile requires spec.gpus >= 1 (the count of MIG instances)");
    }
    if (cannot_do_mig(spec.gpu_kind)) {
      problems.push_back(cat("spec.gpu_profile \"", spec.gpu_profile,
                             "\" is not valid for gpu_kind \"", spec.gpu_kind,
                             "\" (that gpu does not support MIG)"));
    }
  }
  if (problems.empty()) return {};
  return invalid(join(problems, "; "));
}

// [a-zA-Z0-9]([-._a-zA-Z0-9]{0,61}[a-zA-Z0-9])?
bool is_label(std::string_view text) {
  return !text.empty() && text.size() <= 63 && is_alphanumeric(text.front()) &&
         is_alphanumeric(text.back()) && std::all_of(text.begin(), text.end(), [](char c) {
           return is_alphanumeric(c) || c == '-' || c == '.' || c == '_';
         });
}

Result<void> check_labels(const ResourceSpec& spec) {
  for (const auto& [key, value] : spec.labels) {
    if (!is_label(key)) return invalid(cat("spec.labels: invalid label key \"", key, '"'));
    if (!is_label(value)) {
      return invalid(cat("spec.labels[", key, "]: invalid label value \"", value, '"'));
    }
  }
  return {};
}

Result<void> check_amounts(const ResourceSpec& spec) {
  if (spec.cpus < 0) return invalid("spec.cpus must not be negative");
  if (spec.ram_mb < 0) return invalid("spec.ram_mb must not be negative");
  if (spec.storage_gb < 0) return invalid("spec.storage_gb must not be negative");
  if (spec.max_runtime_seconds < 0) {
    return invalid("spec.max_runtime_seconds must not be negative");
  }
  if (spec.idle_timeout_seconds < 0) {
    return invalid("spec.idle_timeout_seconds must not be negative");
  }
  if (spec.idle_timeout_seconds > 0 && spec.idle_timeout_seconds < 60) {
    return invalid(
        "spec.idle_timeout_seconds must be at least 60 (idle detection runs on the reconcile "
        "loop)");
  }
  return {};
}

Result<void> check_probe(const HealthcheckSpec& check) {
  if (check.http && !check.exec.empty()) {
    return invalid("healthcheck: http and exec are mutually exclusive");
  }
  if (!check.http && check.exec.empty()) return invalid("healthcheck: http or exec is required");
  if (check.http && (check.http->port < 1 || check.http->port > 65535)) {
    return invalid("healthcheck.http.port must be between 1 and 65535");
  }
  if (check.http && !check.http->path.empty() && check.http->path.front() != '/') {
    return invalid(
        cat("healthcheck.http.path must start with a slash, got \"", check.http->path, '"'));
  }
  for (std::size_t i = 0; i < check.exec.size(); ++i) {
    if (check.exec[i].empty()) return invalid(cat("healthcheck.exec[", i, "] must not be empty"));
  }
  return {};
}

Result<void> check_healthcheck(const std::optional<HealthcheckSpec>& given) {
  if (!given) return {};
  if (auto done = check_probe(*given); !done) return done;
  const std::array<std::pair<std::string_view, std::int64_t>, 4> numbers = {{
      {"interval_seconds", given->interval_seconds},
      {"timeout_seconds", given->timeout_seconds},
      {"retries", given->retries},
      {"start_period_seconds", given->start_period_seconds},
  }};
  for (const auto& [name, value] : numbers) {
    if (value < 0) return invalid(cat("healthcheck.", name, " must not be negative"));
  }
  if (given->interval_seconds > 0 && given->timeout_seconds > given->interval_seconds) {
    return invalid(cat("healthcheck.timeout_seconds (", given->timeout_seconds,
                       ") must not exceed healthcheck.interval_seconds (", given->interval_seconds,
                       ')'));
  }
  return {};
}

Result<void> check_desktop(const std::optional<DesktopSpec>& desktop) {
  if (!desktop) return {};
  const std::array<std::pair<std::string_view, std::int32_t>, 2> sides = {
      {{"width", desktop->width}, {"height", desktop->height}}};
  for (const auto& [name, value] : sides) {
    if (value < 320 || value > 3840) {
      return invalid(cat("desktop.", name, " must be between 320 and 3840, got ", value));
    }
  }
  return {};
}

Result<void> check_startup(std::int64_t seconds, std::chrono::seconds most) {
  if (seconds < 0) return invalid("startup_script_timeout_seconds must not be negative");
  if (seconds <= most.count()) return {};
  // Beyond a year the nanoseconds of a duration would not hold it.
  const std::chrono::seconds asked(std::min<std::int64_t>(seconds, 366LL * 24 * 3600));
  return invalid(cat("startup script timeout exceeds the configured maximum: requested ",
                     to_string(std::chrono::nanoseconds(asked)), ", maximum is ",
                     to_string(std::chrono::nanoseconds(most))));
}

Result<void> check_path(const std::string& path) {
  if (path.empty() || path.front() != '/') {
    return invalid(cat("files: \"", path, "\" must be an absolute guest path"));
  }
  if (path.find('\0') != std::string::npos || path.find('\n') != std::string::npos) {
    return invalid("files: a path must not contain newlines or NUL bytes");
  }
  std::string clean = std::filesystem::path(path).lexically_normal().native();
  if (clean.size() > 2 && clean.substr(0, 2) == "//") clean.erase(0, 1);
  if (clean.size() > 1 && clean.back() == '/') clean.pop_back();
  if (clean != path || path == "/") {
    return invalid(cat("files: \"", path, "\" is not a clean path (want \"", clean, "\")"));
  }
  if (path == "/fuse" || path.rfind("/fuse/", 0) == 0) {
    return invalid(cat("files: \"", path,
                       "\" is under /fuse, which is reserved for the guest agent's own files"));
  }
  return {};
}

bool is_mode(const std::string& mode) {
  const bool sized = mode.size() == 3 || (mode.size() == 4 && mode.front() == '0');
  return sized &&
         std::all_of(mode.begin(), mode.end(), [](char c) { return c >= '0' && c <= '7'; });
}

Result<void> check_files(const CreateEnvironmentRequest& request) {
  std::size_t total = 0;
  for (const auto& [path, encoded] : request.files) {
    if (auto done = check_path(path); !done) return done;
    const auto bytes = base64_decode(encoded);
    if (!bytes) return invalid(cat("files: \"", path, "\" is not standard base64"));
    total += bytes->size();
    if (total > most_file_bytes) {
      return Error{ErrorCode::payload_too_large,
                   cat("files: too large: files total more than the ", most_file_bytes,
                       " byte limit for one create request")};
    }
  }
  for (const auto& [path, mode] : request.file_modes) {
    if (request.files.count(path) == 0) {
      return invalid(cat("file_modes: \"", path, "\" is not one of the files"));
    }
    if (!is_mode(mode)) {
      return invalid(cat("file_modes: \"", path, "\": invalid octal mode \"", mode,
                         "\" (expected e.g. \"0644\")"));
    }
  }
  return {};
}

std::vector<std::string> secret_problems(const std::map<std::string, std::string>& secrets) {
  std::vector<std::string> problems;
  if (secrets.size() > most_secrets) {
    problems.push_back(cat("more than ", most_secrets, " secrets"));
  }
  std::size_t total = 0;
  for (const auto& [name, value] : secrets) {
    total += name.size() + value.size();
    if (name.empty()) problems.emplace_back("a secret's name must not be empty");
    if (name.size() > most_secret_name) {
      problems.push_back(cat("secret name longer than ", most_secret_name, " bytes"));
    }
    if (value.size() > most_secret_value) {
      problems.push_back(cat("secret \"", name, "\" longer than ", most_secret_value, " bytes"));
    }
  }
  if (total > most_secret_bytes) {
    problems.push_back(cat("secrets total more than ", most_secret_bytes, " bytes"));
  }
  return problems;
}

Result<void> check_secrets(const CreateEnvironmentRequest& request) {
  const auto manifest = parse_manifest(request.manifest_inline);
  if (!manifest) return manifest.error();
  auto problems = secret_problems(request.secrets);
  std::vector<std::string> missing;
  for (const std::string& name : required_secrets(*manifest)) {
    if (request.secrets.count(name) == 0) missing.push_back(name);
  }
  if (!missing.empty()) {
    problems.push_back(cat("missing required secrets: ", join(missing, ", ")));
  }
  if (problems.empty()) return {};
  return invalid(cat("secrets validation failed: ", join(problems, "; ")));
}

Result<void> check_expose(const std::vector<ExposeSpec>& expose) {
  for (std::size_t i = 0; i < expose.size(); ++i) {
    if (expose[i].port < 1 || expose[i].port > 65535) {
      return invalid(cat("expose[", i, "].port: must be between 1 and 65535"));
    }
  }
  return {};
}

Result<void> check_phases(const CreateEnvironmentRequest& request) {
  if (request.settle_seconds && *request.settle_seconds < 0) {
    return invalid("settle_seconds must not be negative");
  }
  if (!request.phases) return {};
  const auto absolute = [](const std::string& dir) { return dir.empty() || dir.front() == '/'; };
  for (std::size_t i = 0; i < request.phases->build.size(); ++i) {
    if (request.phases->build[i].script.empty()) {
      return invalid(cat("phases.build[", i, "].script is required"));
    }
    if (!absolute(request.phases->build[i].workdir)) {
      return invalid(cat("phases.build[", i, "].workdir must be an absolute path"));
    }
  }
  if (!absolute(request.phases->workdir)) {
    return invalid("phases.run.workdir must be an absolute path");
  }
  return {};
}

Result<void> check_seed(const CreateEnvironmentRequest& request) {
  if (request.seed_snapshot_id.empty()) return {};
  return Error{ErrorCode::unimplemented,
               "seed_snapshot_id: this orchestrator's hosts have no snapshots"};
}

}  // namespace

Result<void> validate(const CreateEnvironmentRequest& request, const ValidationFacts& facts) {
  const ResourceSpec& spec = request.spec;
  if (request.task_id.empty()) return invalid("task_id is required");
  if (auto done = check_gpus(spec); !done) return done;
  if (auto done = check_labels(spec); !done) return done;
  if (!spec.host_id.empty()) {
    if (auto done = facts.host_exists(spec.host_id); !done) return done;
  }
  if (auto done = check_amounts(spec); !done) return done;
  if (auto done = check_healthcheck(request.healthcheck); !done) return done;
  if (auto done = check_desktop(request.desktop); !done) return done;
  if (auto done = check_startup(request.startup_script_timeout_seconds, facts.most_startup);
      !done) {
    return done;
  }
  if (auto done = check_files(request); !done) return done;
  if (auto done = check_secrets(request); !done) return done;
  if (auto done = check_seed(request); !done) return done;
  if (auto done = check_expose(request.expose); !done) return done;
  return check_phases(request);
}

Result<ExecRequest> checked_exec(const ExecRequest& request) {
  if (!request.cmd.empty() && !request.shell.empty()) {
    return invalid("cmd and shell are mutually exclusive");
  }
  if (request.cmd.empty() && request.shell.empty()) {
    return invalid("one of cmd or shell is required");
  }
  constexpr std::int64_t usual = 60'000;
  constexpr std::int64_t most = 600'000;
  ExecRequest out{.cmd = request.cmd};
  if (!request.shell.empty()) out.cmd = {"sh", "-lc", request.shell};
  out.timeout_ms = request.timeout_ms <= 0 ? usual : std::min(request.timeout_ms, most);
  return out;
}

CreateEnvironmentRequest with_defaults(CreateEnvironmentRequest request) {
  if (request.spec.cpus == 0) request.spec.cpus = 1;
  if (request.spec.ram_mb == 0) request.spec.ram_mb = 1024;
  request.spec.gpu_profile = lowercase(request.spec.gpu_profile);
  return request;
}

}  // namespace fuse
