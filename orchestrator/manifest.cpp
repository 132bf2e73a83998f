#include "orchestrator/manifest.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/text.h"
#include "orchestrator/json_text.h"

namespace fuse {

namespace {

using nlohmann::json;
using Json = nlohmann::ordered_json;

constexpr std::string_view empty_manifest =
    R"({"version":"1","machine":{"workspace":"/workspace"},"services":{}})";

bool is_shell_name(const std::string& name) {
  const auto starts = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
  };
  return !name.empty() && starts(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return starts(c) || (c >= '0' && c <= '9'); });
}

std::map<std::string, ManifestValue> read_env(JsonReader& owner) {
  std::map<std::string, ManifestValue> out;
  const json* const env = owner.object("env");
  if (env == nullptr) return out;
  for (const auto& [name, entry] : env->items()) {
    if (entry.is_null()) continue;
    JsonReader reader(entry, cat(owner.path_of("env"), '.', name));
    out[name] = {.value = reader.text("value").value_or(""),
                 .secret = reader.text("secret").value_or("")};
    if (auto done = reader.finish(); !done) owner.complain_with(done.error());
  }
  return out;
}

ManifestService read_service(JsonReader& reader, const json& object) {
  ManifestService service;
  service.image = reader.text("image").value_or("");
  if (const auto ports = object.find("ports"); ports != object.end() && ports->is_array()) {
    for (const json& port : *ports) {
      if (port.is_number_integer()) service.ports.push_back(port.get<std::int64_t>());
    }
  }
  service.env = read_env(reader);
  service.command = reader.texts("command").value_or(std::vector<std::string>());
  service.restart = reader.text("restart").value_or("");
  service.depends_on = reader.texts("depends_on").value_or(std::vector<std::string>());
  if (const json* const check = reader.object("healthcheck")) {
    JsonReader inner(*check, reader.path_of("healthcheck"));
    service.test = inner.texts("test").value_or(std::vector<std::string>());
    service.interval = inner.text("interval").value_or("");
    service.timeout = inner.text("timeout").value_or("");
    service.retries = inner.integer("retries").value_or(0);
    if (auto done = inner.finish(); !done) reader.complain_with(done.error());
  }
  return service;
}

Result<void> read_services(JsonReader& top, Manifest& manifest) {
  const json* const services = top.object("services");
  if (services == nullptr) return {};
  for (const auto& [name, entry] : services->items()) {
    if (!entry.is_object()) {
      return Error{ErrorCode::invalid_argument, cat("services.", name, " must be an object")};
    }
    JsonReader reader(entry, cat("services.", name));
    manifest.services[name] = read_service(reader, entry);
    if (auto done = reader.finish(); !done) return done.error();
  }
  return {};
}

Result<Manifest> read_manifest(std::string text) {
  const auto document = parse_json(text);
  if (!document) return document.error();
  if (!document->is_object()) {
    return Error{ErrorCode::invalid_argument, "the manifest must be a JSON object"};
  }
  Manifest manifest{.text = std::move(text)};
  JsonReader top(*document, "");
  if (const json* const machine = top.object("machine")) {
    JsonReader reader(*machine, "machine");
    manifest.env = read_env(reader);
    if (auto done = reader.finish(); !done) return done.error();
  }
  if (auto done = read_services(top, manifest); !done) return done.error();
  if (auto done = top.finish(); !done) return done.error();
  return manifest;
}

std::string value_of(const ManifestValue& value,
                     const std::map<std::string, std::string>& secrets) {
  if (value.secret.empty()) return value.value;
  const auto found = secrets.find(value.secret);
  return found == secrets.end() ? std::string() : found->second;
}

// Compose puts the value of a variable for $NAME; a doubled $ stands for one.
std::string compose_text(std::string_view text) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '$') out += c;
  }
  return out;
}

Json texts(const std::vector<std::string>& words) {
  Json out = Json::array();
  for (const std::string& word : words) out.push_back(compose_text(word));
  return out;
}

Json healthcheck_json(const ManifestService& service) {
  Json check = Json::object();
  if (!service.test.empty()) check["test"] = texts(service.test);
  if (!service.interval.empty()) check["interval"] = service.interval;
  if (!service.timeout.empty()) check["timeout"] = service.timeout;
  if (service.retries != 0) check["retries"] = service.retries;
  return check;
}

Json service_json(const ManifestService& service,
                  const std::map<std::string, std::string>& secrets) {
  Json out = {{"image", service.image}};
  if (!service.ports.empty()) {
    out["ports"] = Json::array();
    for (const auto port : service.ports) out["ports"].push_back(cat(port, ':', port));
  }
  if (!service.env.empty()) {
    out["environment"] = Json::object();
    for (const auto& [name, value] : service.env) {
      out["environment"][name] = compose_text(value_of(value, secrets));
    }
  }
  if (!service.command.empty()) out["command"] = texts(service.command);
  if (!service.restart.empty()) out["restart"] = service.restart;
  if (Json check = healthcheck_json(service); !check.empty()) out["healthcheck"] = check;
  if (!service.depends_on.empty()) out["depends_on"] = service.depends_on;
  return out;
}

}  // namespace

Result<Manifest> parse_manifest(const std::string& manifest_inline) {
  std::string text(empty_manifest);
  if (!manifest_inline.empty()) {
    auto decoded = base64_decode(manifest_inline);
    if (!decoded) {
      return Error{ErrorCode::invalid_argument, "decode manifest_inline: not base64"};
    }
    text = *std::move(decoded);
  }
  auto manifest = read_manifest(std::move(text));
  if (!manifest) {
    Error error = in_context("decode manifest_inline", manifest.error());
    error.code = ErrorCode::invalid_argument;
    return error;
  }
  return manifest;
}

std::set<std::string> required_secrets(const Manifest& manifest) {
  std::set<std::string> out;
  const auto add = [&](const std::map<std::string, ManifestValue>& env) {
    for (const auto& [name, value] : env) {
      if (!value.secret.empty()) out.insert(value.secret);
    }
  };
  add(manifest.env);
  for (const auto& [name, service] : manifest.services) add(service.env);
  return out;
}

std::map<std::string, std::string> resolved_env(const Manifest& manifest,
                                                const std::map<std::string, std::string>& secrets) {
  std::map<std::string, std::string> out;
  for (const auto& [name, value] : manifest.env) {
    if (is_shell_name(name)) out[name] = value_of(value, secrets);
  }
  return out;
}

std::string env_file(const std::map<std::string, std::string>& env) {
  std::string out;
  for (const auto& [name, value] : env) out += cat(name, '=', shell_quote(value), '\n');
  return out;
}

std::string compose_file(const Manifest& manifest,
                         const std::map<std::string, std::string>& secrets) {
  if (manifest.services.empty()) return "";
  Json services = Json::object();
  for (const auto& [name, service] : manifest.services) {
    services[name] = service_json(service, secrets);
  }
  return json_text({{"services", std::move(services)}}) + "\n";
}

}  // namespace fuse
