#include "guest/compose.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "base/json_reader.h"
#include "base/text.h"

namespace fuse {

namespace {

using Exists = std::function<bool(const fs::path&)>;

constexpr std::array<std::string_view, 3> program_folders = {"/usr/local/bin", "/usr/bin", "/bin"};
constexpr std::array<std::string_view, 4> plugin_folders = {
    "/usr/libexec/docker/cli-plugins", "/usr/lib/docker/cli-plugins",
    "/usr/local/libexec/docker/cli-plugins", "/usr/local/lib/docker/cli-plugins"};
constexpr const char* podman_socket = "/run/podman/podman.sock";
constexpr const char* docker_socket = "/run/docker.sock";

std::optional<std::string> program(const Exists& exists, std::string_view name) {
  for (const std::string_view folder : program_folders) {
    std::string path = cat(folder, "/", name);
    if (exists(path)) return path;
  }
  return std::nullopt;
}

bool has_compose_plugin(const Exists& exists) {
  for (const std::string_view folder : plugin_folders) {
    if (exists(cat(folder, "/docker-compose"))) return true;
  }
  return false;
}

std::vector<std::string> up(std::vector<std::string> argv, const fs::path& compose_file) {
  argv.insert(argv.end(), {"-f", compose_file.native(), "up", "-d"});
  return argv;
}

}  // namespace

Result<ComposePlan> plan_compose(const Exists& exists, const fs::path& compose_file) {
  const auto podman = program(exists, "podman");
  const auto podman_compose = program(exists, "podman-compose");
  if (podman && podman_compose) {
    // The health checks of containers are timers of systemd, which may not be there.
    return ComposePlan{.argv = up({*podman_compose}, compose_file),
                       .environment = {"DISABLE_HC_SYSTEMD=true"},
                       .list = {*podman, "ps", "-a", "--filter",
                                "label=com.docker.compose.project=fuse", "--format", "json"}};
  }
  const auto docker = program(exists, "docker");
  const auto docker_compose = program(exists, "docker-compose");
  // One that serves podman is named to the client, which else asks docker's.
  if (docker_compose && podman) {
    return ComposePlan{.argv = up({*docker_compose}, compose_file),
                       .environment = {cat("DOCKER_HOST=unix://", podman_socket)},
                       .daemon = podman_socket};
  }
  if (docker && has_compose_plugin(exists)) {
    return ComposePlan{.argv = up({*docker, "compose"}, compose_file), .daemon = docker_socket};
  }
  if (docker && docker_compose) {
    return ComposePlan{.argv = up({*docker_compose}, compose_file), .daemon = docker_socket};
  }
  return Error{ErrorCode::not_found,
               "the image has nothing to run services with, neither podman-compose nor docker "
               "compose; one that has: fuse image bake NAME --with containers"};
}

std::vector<std::string> services_not_started(std::string_view compose_file,
                                              std::string_view containers) {
  const auto wanted = parse_json(compose_file);
  const auto found = parse_json(containers);
  if (!wanted || !found || !wanted->is_object() || !found->is_array()) return {};
  std::set<std::string> started;
  for (const auto& container : *found) {
    JsonReader reader(container, "");
    const auto labels = reader.text_map("Labels");
    const std::string state = reader.text("State").value_or("");
    if (!labels || state.empty() || state == "created" || state == "configured") continue;
    const auto service = labels->find("com.docker.compose.service");
    if (service != labels->end()) started.insert(service->second);
  }
  std::vector<std::string> missing;
  JsonReader reader(*wanted, "");
  const auto* const services = reader.object("services");
  if (services == nullptr) return {};
  for (const auto& [name, service] : services->items()) {
    if (!started.contains(name)) missing.push_back(name);
  }
  return missing;
}

std::string telling_lines(std::string_view output) {
  constexpr std::size_t most = 5;
  std::vector<std::string> lines = split(trim(output), '\n');
  std::vector<std::string> errors;
  std::ranges::copy_if(lines, std::back_inserter(errors), [](const std::string& line) {
    return contains_ignoring_case(line, "error");
  });
  if (!errors.empty()) lines = std::move(errors);
  if (lines.size() > most) lines.erase(lines.begin(), lines.end() - most);
  return valid_utf8(join(lines, "\n"));
}

}  // namespace fuse
