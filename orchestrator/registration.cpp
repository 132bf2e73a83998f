#include "orchestrator/registration.h"

#include <algorithm>

#include "base/text.h"
#include "net/url.h"
#include "orchestrator/scheduler.h"

namespace fuse {

namespace {

Error invalid(std::string message) {
  return {ErrorCode::invalid_argument, std::move(message)};
}

Error about_agent(ErrorCode code, std::string message) {
  return {code, std::move(message), {{"reason", "agent"}}};
}

Result<void> check_url(const std::string& url) {
  const std::size_t colon = url.find("://");
  if (colon == std::string::npos) {
    return invalid("host url must include a scheme (http:// or https://)");
  }
  const std::string scheme = lowercase(url.substr(0, colon));
  if (scheme != "http" && scheme != "https") {
    return invalid(cat("host url scheme \"", scheme, "\" is not supported; use http or https"));
  }
  const std::string rest = url.substr(colon + 3);
  if (rest.substr(0, rest.find_first_of("/?#")).find('@') != std::string::npos) {
    return invalid("host url must not embed credentials; pass the agent's token as `token`");
  }
  if (rest.find('?') != std::string::npos) {
    return invalid("host url must not include a query string");
  }
  if (rest.find('#') != std::string::npos) return invalid("host url must not include a fragment");
  const auto parsed = parse_url(url);
  if (!parsed) return in_context("host url", parsed.error());
  return {};
}

Result<void> check_gpus(const RegisterHostRequest& request) {
  const HostCapacity& capacity = request.capacity;
  if (capacity.gpus < 0) return invalid("gpus must not be negative");
  const bool qemu = request.backend == Backend::qemu;
  if (capacity.gpus > 0 && !qemu) return invalid("gpus > 0 requires backend \"qemu\"");
  if (!capacity.mig_profiles.empty() && !qemu) {
    return invalid("mig_profiles requires backend \"qemu\"");
  }
  for (const auto& [profile, count] : capacity.mig_profiles) {
    if (!is_mig_profile(profile)) {
      return invalid(cat("mig_profiles[", profile,
                         "]: invalid MIG profile (expected mig-parted form like \"1g.10gb\")"));
    }
    if (count <= 0) return invalid(cat("mig_profiles[", profile, "]: count must be positive"));
  }
  return {};
}

Result<void> check_arch(const std::string& arch) {
  const std::string canonical = canonical_arch(arch);
  if (canonical == "amd64" || canonical == "arm64") return {};
  return invalid(cat("arch must be \"amd64\" or \"arm64\" (got \"", arch, "\")"));
}

// Which variable of the agent's the token has to be a copy of.
std::string_view token_variable(Backend backend) {
  return backend == Backend::qemu ? "QEMU_AGENT_TOKEN" : "FC_AGENT_TOKEN";
}

bool declares_all(const HostCapacity& capacity) {
  return capacity.cpus > 0 && capacity.ram_mb > 0 && capacity.storage_gb > 0;
}

Result<void> check_amounts(const HostCapacity& capacity) {
  const bool positive = declares_all(capacity) && capacity.vm_count > 0;
  if (positive) return {};
  return invalid(cat("cpus, ram_mb, storage_gb, and vm_count must be positive (got ", capacity.cpus,
                     ", ", capacity.ram_mb, ", ", capacity.storage_gb, " and ", capacity.vm_count,
                     ")"));
}

std::vector<std::string> warnings_about(const HostCapacity& declared, const HostCapacity& probed) {
  std::vector<std::string> out;
  const auto exceeds = [&](std::string_view name, std::int32_t said, std::int32_t found) {
    if (said > found && found > 0) {
      out.push_back(
          cat("declared ", name, " (", said, ") exceeds probed host capacity (", found, ')'));
    }
  };
  exceeds("cpus", declared.cpus, probed.cpus);
  exceeds("ram_mb", declared.ram_mb, probed.ram_mb);
  exceeds("storage_gb", declared.storage_gb, probed.storage_gb);
  if (declared.gpus > probed.gpus) {
    out.push_back(cat("declared gpus (", declared.gpus, ") exceeds probed host capacity (",
                      probed.gpus, ')'));
  }
  const bool other_kind = !declared.gpu_kind.empty() && !probed.gpu_kind.empty() &&
                          !contains_ignoring_case(probed.gpu_kind, declared.gpu_kind);
  if (other_kind) {
    out.push_back(cat("declared gpu_kind (\"", declared.gpu_kind,
                      "\") differs from probed host gpu_kind (\"", probed.gpu_kind, "\")"));
  }
  return out;
}

}  // namespace

Result<RegisterHostRequest> checked_registration(RegisterHostRequest request) {
  if (request.id.empty() || request.url.empty()) return invalid("id and url are required");
  if (auto done = check_url(request.url); !done) return done.error();
  while (request.url.ends_with('/')) request.url.pop_back();
  if (auto done = check_gpus(request); !done) return done.error();
  if (!request.capacity.arch.empty()) {
    if (auto done = check_arch(request.capacity.arch); !done) return done.error();
    request.capacity.arch = canonical_arch(request.capacity.arch);
  }
  std::map<std::string, std::int32_t> profiles;
  for (const auto& [profile, count] : request.capacity.mig_profiles) {
    profiles[lowercase(profile)] += count;
  }
  request.capacity.mig_profiles = std::move(profiles);
  return request;
}

HostCapacity merged_capacity(const HostCapacity& declared, const HostCapacity& probed) {
  const auto either = [](std::int32_t said, std::int32_t found) { return said > 0 ? said : found; };
  HostCapacity out = probed;
  out.cpus = either(declared.cpus, probed.cpus);
  out.ram_mb = either(declared.ram_mb, probed.ram_mb);
  out.storage_gb = either(declared.storage_gb, probed.storage_gb);
  out.vm_count = declared.vm_count;
  out.gpus = either(declared.gpus, probed.gpus);
  if (!declared.gpu_kind.empty()) out.gpu_kind = declared.gpu_kind;
  out.arch = canonical_arch(declared.arch.empty() ? probed.arch : declared.arch);
  if (!declared.mig_profiles.empty()) out.mig_profiles = declared.mig_profiles;
  if (out.mig_profiles.empty()) {
    for (const MigInstance& instance : out.mig_instances) {
      out.mig_profiles[lowercase(instance.profile)] += 1;
    }
  }
  return out;
}

Result<Registration> register_with(const RegisterHostRequest& request,
                                   const Result<HostCapacity>& probed) {
  const HostCapacity& declared = request.capacity;
  if (probed) {
    const std::string arch = canonical_arch(probed->arch);
    if (!declared.arch.empty() && !probed->arch.empty() && declared.arch != arch) {
      return invalid(cat("declared arch \"", declared.arch,
                         "\" contradicts the host agent's probed arch \"", arch, '"'));
    }
    Registration out{.capacity = merged_capacity(declared, *probed),
                     .warnings = warnings_about(declared, *probed)};
    if (auto done = check_amounts(out.capacity); !done) return done.error();
    return out;
  }
  const ErrorCode code = probed.error().code;
  if (code == ErrorCode::unauthorized || code == ErrorCode::forbidden) {
    return about_agent(ErrorCode::unauthorized,
                       cat("host agent at ", request.url, " rejected the token. Give the value of ",
                           token_variable(request.backend), " that the agent was started with"));
  }
  if (!declares_all(declared)) {
    return about_agent(ErrorCode::internal,
                       cat("could not probe host capacity and cpus/ram_mb/storage_gb were not all "
                           "declared explicitly: ",
                           probed.error().message));
  }
  if (auto done = check_amounts(declared); !done) return done.error();
  return Registration{
      .capacity = merged_capacity(declared, {}),
      .warnings = {cat("could not verify host agent at ", request.url, " (", probed.error().message,
                       "); registering with declared capacity")}};
}

}  // namespace fuse
