#include "orchestrator/api_document.h"

#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "base/json_reader.h"
#include "base/text.h"
#include "orchestrator/http_routes.h"
#include "tests/orchestrator/engine.h"

namespace fuse {
namespace {

using nlohmann::json;

json document() {
  return must(parse_json(api_document));
}

// Who may call: of a document's operation or action.
std::string access_in(const json& operation) {
  const auto security = operation.find("security");
  if (security != operation.end() && security->empty()) return "nobody is asked";
  return operation.value("x-master", false) ? "master" : "user";
}

std::string access_of(const ApiRouteEntry& route) {
  if (route.access == Access::master) return "master";
  return route.access == Access::user ? "user" : "nobody is asked";
}

// "method PATH ACTION: who may call it"
std::set<std::string> routes_of_document() {
  std::set<std::string> out;
  const json paths = document().at("paths");
  for (const auto& path : paths.items()) {
    for (const auto& method : path.value().items()) {
      if (method.key() == "parameters") continue;
      const std::string name = cat(method.key(), ' ', path.key(), ' ');
      const json actions = method.value().value("x-actions", json::object());
      if (actions.empty()) out.insert(cat(name, ": ", access_in(method.value())));
      for (const auto& action : actions.items()) {
        out.insert(cat(name, action.key(), ": ", access_in(action.value())));
      }
    }
  }
  return out;
}

std::set<std::string> routes_of_program() {
  std::set<std::string> out;
  for (const ApiRouteEntry& route : all_routes()) {
    out.insert(cat(lowercase(route.method), ' ', route.pattern, ' ', route.action, ": ",
                   access_of(route)));
  }
  return out;
}

// The texts of an enumeration, from its first value to `last`.
template <class E>
std::set<std::string> names_up_to(E last) {
  std::set<std::string> out;
  for (int value = 0; value <= static_cast<int>(last); ++value) {
    out.emplace(to_string(static_cast<E>(value)));
  }
  return out;
}

std::set<std::string> names_in(const std::string& schema, const std::string& field) {
  const json wanted = document().at("components").at("schemas").at(schema).at("properties");
  return wanted.at(field).at("enum").get<std::set<std::string>>();
}

TEST_CASE("the API's document has the routes that are served, and who may call them") {
  CHECK(routes_of_document() == routes_of_program());
}

TEST_CASE("the API's document knows every code and state") {
  auto codes = names_up_to(ErrorCode::unreachable);
  codes.erase(std::string(to_string(ErrorCode::unreachable)));
  const json error = document().at("components").at("schemas").at("Error").at("properties");
  CHECK(error.at("error").at("properties").at("code").at("enum").get<std::set<std::string>>() ==
        codes);
  CHECK(names_in("Environment", "state") == names_up_to(EnvironmentState::failed));
  CHECK(names_in("Event", "state") == names_up_to(EnvironmentState::failed));
  CHECK(names_in("Job", "state") == names_up_to(JobState::lost));
  CHECK(names_in("Job", "phase") == names_up_to(JobPhase::done));
  CHECK(names_in("CreateRequest", "on_exit") == names_up_to(OnExit::destroy));
  CHECK(names_in("Host", "state") == names_up_to(HostState::draining));
  CHECK(names_in("Host", "backend") == names_up_to(Backend::qemu));
  CHECK(names_in("HostRequest", "backend") == names_up_to(Backend::qemu));
}

TEST_CASE("an action of the API's document is one that its parameter takes") {
  const json paths = document().at("paths");
  for (const auto& path : paths.items()) {
    const json operation = path.value().value("post", json::object());
    if (!operation.contains("x-actions")) continue;
    std::set<std::string> told;
    for (const auto& action : operation.at("x-actions").items()) told.insert(action.key());
    const json& parameter = operation.at("parameters").at(0);
    CHECK(parameter.at("name") == "action");
    CHECK(parameter.at("schema").at("enum").get<std::set<std::string>>() == told);
  }
}

}  // namespace
}  // namespace fuse
