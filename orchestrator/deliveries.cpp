#include "orchestrator/deliveries.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "orchestrator/api/json.h"
#include "orchestrator/json_text.h"

namespace fuse {

namespace {

std::uint32_t mode_of(const CreateEnvironmentRequest& request, const std::string& path) {
  const auto found = request.file_modes.find(path);
  if (found == request.file_modes.end()) return 0;
  std::uint32_t mode = 0;
  for (const char digit : found->second) mode = mode * 8 + static_cast<std::uint32_t>(digit - '0');
  return mode;
}

std::string secrets_file(const CreateEnvironmentRequest& request) {
  nlohmann::ordered_json out = nlohmann::ordered_json::object();
  for (const auto& [name, value] : request.secrets) out[name] = value;
  return json_text(out);
}

// Our own, by path.
std::map<std::string, std::string> own_files(const CreateEnvironmentRequest& request,
                                             const Manifest& manifest) {
  std::map<std::string, std::string> out;
  out["/fuse/manifest.json"] = manifest.text;
  out["/fuse/secrets.json"] = secrets_file(request);
  const auto env = resolved_env(manifest, request.secrets);
  if (!env.empty()) out["/fuse/env"] = env_file(env);
  if (auto compose = compose_file(manifest, request.secrets); !compose.empty()) {
    out["/fuse/compose.yaml"] = std::move(compose);
  }
  if (request.healthcheck) {
    out["/fuse/healthcheck.json"] = json_text(to_json(*request.healthcheck));
  }
  if (request.desktop) {
    out["/fuse/desktop.json"] =
        json_text({{"width", request.desktop->width}, {"height", request.desktop->height}});
  }
  return out;
}

}  // namespace

Result<std::vector<UploadFile>> guest_files(const CreateEnvironmentRequest& request,
                                            const Manifest& manifest,
                                            const std::vector<UploadFile>& credentials) {
  std::vector<UploadFile> out;
  auto own = own_files(request, manifest);
  for (const UploadFile& file : credentials) own[file.path] = file.bytes;
  out.reserve(own.size() + request.files.size());
  for (const auto& [path, bytes] : own) out.push_back({.path = path, .bytes = bytes});
  for (const auto& [path, encoded] : request.files) {
    if (own.count(path) != 0) continue;
    auto bytes = base64_decode(encoded);
    if (!bytes) {
      return Error{ErrorCode::invalid_argument,
                   cat("files: \"", path, "\" is not standard base64")};
    }
    out.push_back({.path = path, .bytes = *std::move(bytes), .mode = mode_of(request, path)});
  }
  return out;
}

JobSpec job_of(const CreateEnvironmentRequest& request, const Manifest& manifest,
               std::chrono::seconds left) {
  JobSpec job;
  if (request.phases) {
    job.steps = request.phases->build;
    job.script = request.phases->run;
    job.workdir = request.phases->workdir;
  }
  job.env = resolved_env(manifest, request.secrets);
  job.env["FUSE_TASK_ID"] = request.task_id;
  job.env["FUSE_GPU_COUNT"] = std::to_string(std::max(0, request.spec.gpus));
  job.timeout_seconds = left.count();
  return job;
}

std::string redacted(std::string text, const std::map<std::string, std::string>& secrets) {
  constexpr std::size_t shortest = 8;
  constexpr std::string_view mark = "[REDACTED]";
  std::vector<std::string> values;
  for (const auto& [name, value] : secrets) {
    if (value.size() >= shortest) values.push_back(value);
  }
  std::sort(values.begin(), values.end(),
            [](const std::string& a, const std::string& b) { return a.size() > b.size(); });
  for (const std::string& value : values) {
    for (std::size_t at = 0; (at = text.find(value, at)) != std::string::npos;) {
      text.replace(at, value.size(), mark);
      at += mark.size();
    }
  }
  return text;
}

}  // namespace fuse
