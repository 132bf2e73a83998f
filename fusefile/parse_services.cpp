#include <algorithm>
#include <utility>

#include "base/quote.h"
#include "base/suggest.h"
#include "base/text.h"
#include "fusefile/grammar.h"
#include "fusefile/hints.h"
#include "fusefile/sections.h"

namespace fuse {

namespace {

constexpr std::int32_t highest_port = 65535;
constexpr std::string_view name_hint = "write a name as a shell takes it, as in BATCH_SIZE";
constexpr std::string_view no_name = "environment variable name must not be empty";

Fusefile::EnvValue read_env_value(const YamlField& field, Report& report) {
  if (field.node->kind == YamlNode::Kind::scalar) {
    report_wrong_kind(field, "map", report, "", hint_for_env_text(field.name, field.node->text));
    return {};
  }
  MapReader map(field.node, "env.*", field.path, report);
  Fusefile::EnvValue value{map.text_or_empty("value"), map.text_or_empty("secret")};
  const bool said = report.blamed(field.path) || report.blamed(map.path_of("value")) ||
                    report.blamed(map.path_of("secret"));
  if (!value.value.empty() && !value.secret.empty()) {
    report.error(ProblemCode::exclusive, field.path, "value and secret are mutually exclusive",
                 "keep one of the two");
  } else if (value.value.empty() && value.secret.empty() && !said) {
    report.error(ProblemCode::required, field.path, "value or secret is required",
                 "write {value: TEXT} or {secret: NAME}");
  }
  return value;
}

Fusefile::Env read_service_env(MapReader& service, Report& report) {
  Fusefile::Env env;
  for (const YamlField& field : service.members("env")) {
    if (trim(field.name).empty()) {
      report.error_at(field.key, ProblemCode::bad_value, service.path_of("env"),
                      std::string(no_name), std::string(name_hint));
    }
    env[field.name] = read_env_value(field, report);
  }
  return env;
}

std::vector<std::int32_t> read_ports(MapReader& service, Report& report) {
  std::vector<std::int32_t> ports = service.wholes("ports");
  for (std::size_t i = 0; i < ports.size(); ++i) {
    const std::string path = path_item(service.path_of("ports"), i);
    if ((ports[i] < 1 || ports[i] > highest_port) && !report.blamed(path)) {
      report.error(ProblemCode::out_of_range, path, "must be between 1 and 65535",
                   "write the port that the service listens on, as in 5432");
    }
  }
  return ports;
}

std::string read_restart(MapReader& service, Report& report) {
  const KeyInfo& key = *find_key("services.*", "restart");
  const auto policies = values_of(key);
  std::string restart = service.text_or_empty("restart");
  if (!restart.empty() && std::find(policies.begin(), policies.end(), restart) == policies.end()) {
    const auto near = suggestions(restart, policies);
    report.error(ProblemCode::bad_value, service.path_of("restart"),
                 cat("invalid ", in_quotes(restart), " (want one of: ", key.values, ")"),
                 cat("write ", near.empty() ? policies.front() : near.front()));
  }
  return restart;
}

std::optional<Fusefile::ServiceHealthcheck> read_service_healthcheck(MapReader& service,
                                                                     Report& report) {
  const YamlNode* node = service.map("healthcheck");
  if (node == nullptr) return std::nullopt;
  MapReader map(node, "services.*.healthcheck", service.path_of("healthcheck"), report);
  Fusefile::ServiceHealthcheck healthcheck;
  healthcheck.test = map.texts("test");
  healthcheck.interval = map.text_or_empty("interval");
  healthcheck.timeout = map.text_or_empty("timeout");
  healthcheck.retries = map.whole("retries").value_or(0);
  return healthcheck;
}

Fusefile::Service read_service(const YamlField& field, Report& report) {
  MapReader map(field.node, "services.*", field.path, report);
  Fusefile::Service service;
  service.image = map.text_or_empty("image");
  service.ports = read_ports(map, report);
  service.env = read_service_env(map, report);
  service.command = map.texts("command");
  service.restart = read_restart(map, report);
  service.healthcheck = read_service_healthcheck(map, report);
  service.depends_on = map.texts("depends_on");
  if (service.image.empty() && !report.blamed(field.path) && !report.blamed(map.path_of("image"))) {
    report.error(ProblemCode::required, field.path, "image is required",
                 "add image: a container image, as in postgres:16");
  }
  return service;
}

}  // namespace

Fusefile::Env read_env(MapReader& top, Report& report) {
  Fusefile::Env env;
  for (const YamlField& field : top.members("env")) {
    if (field.name.empty()) {
      report.error_at(field.key, ProblemCode::bad_value, "env", std::string(no_name),
                      std::string(name_hint));
    } else if (!is_env_name(field.name)) {
      report.error_at(field.key, ProblemCode::bad_value, "env",
                      cat("invalid environment variable name ", in_quotes(field.name),
                          " (letters, digits and underscores, not starting with a digit)"),
                      std::string(name_hint));
    }
    env[field.name] = read_env_value(field, report);
  }
  return env;
}

std::map<std::string, Fusefile::Service> read_services(MapReader& top, Report& report) {
  std::map<std::string, Fusefile::Service> services;
  for (const YamlField& field : top.members("services")) {
    services[field.name] = read_service(field, report);
  }
  return services;
}

}  // namespace fuse
