#include "fusefile/keys.h"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "tests/fusefile/compiling.h"

namespace fuse {
namespace {

// A Fusefile in which `value` stands at the key, with what the section needs
// around it.
std::string placed(const KeyInfo& key, std::string_view value) {
  const std::string entry = cat(key.name, ": ", value);
  const std::string_view section = key.section;
  if (section.empty()) return cat("version: 1\n", key.name == "version" ? "" : entry + "\n");
  if (section == "env.*") return cat("version: 1\nenv: {K: {", entry, "}}\n");
  if (section == "build[]" && key.name == "run") return cat("version: 1\nbuild: [{", entry, "}]\n");
  if (section == "build[]") return cat("version: 1\nbuild: [{run: x, ", entry, "}]\n");
  if (section == "services.*") {
    return cat("version: 1\nservices: {S: {", key.name == "image" ? "" : "image: x, ", entry,
               "}}\n");
  }
  if (section == "services.*.healthcheck") {
    return cat("version: 1\nservices: {S: {image: x, healthcheck: {", entry, "}}}\n");
  }
  if (section == "files[]") {
    const std::string_view path = key.name == "path" ? "" : "path: x, ";
    const bool is_body = key.name == "source" || key.name == "content";
    return cat("version: 1\nfiles: [{", path, is_body ? "" : "content: x, ", entry, "}]\n");
  }
  if (section == "copy[]") {
    return cat("version: 1\ncopy: [{", key.name == "from" ? "to: x, " : "from: x, ", entry, "}]\n");
  }
  if (section == "expose[]") {
    return cat("version: 1\nexpose: [{", key.name == "port" ? "" : "port: 80, ", entry, "}]\n");
  }
  if (section == "healthcheck.http") {
    return cat("version: 1\nhealthcheck: {http: {", key.name == "port" ? "" : "port: 80, ", entry,
               "}}\n");
  }
  if (section == "healthcheck") {
    const bool is_probe = key.name == "http" || key.name == "exec";
    return cat("version: 1\nhealthcheck: {", is_probe ? "" : "exec: [x], ", entry, "}\n");
  }
  if (section == "desktop") {
    return cat("version: 1\ndesktop: {", key.name == "width" ? "height: 400, " : "width: 400, ",
               entry, "}\n");
  }
  const bool is_profile = key.name == "gpu_profile";
  return cat("version: 1\n", section, ": {", is_profile ? "gpu: 1, " : "", entry, "}\n");
}

TEST_CASE("the example of every key compiles") {
  for (const KeyInfo& key : all_keys()) {
    const std::string text = placed(key, key.example);
    INFO(text);
    CHECK(complaints_about(text).empty());
    CHECK_FALSE(key.rule.empty());
  }
}

TEST_CASE("every key is read: a value of the wrong kind is noticed") {
  for (const KeyInfo& key : all_keys()) {
    if (key.name == "version") continue;
    const bool takes_list = key.type == KeyType::texts || key.type == KeyType::wholes ||
                            key.type == KeyType::list_of || key.type == KeyType::steps ||
                            key.type == KeyType::command;
    const std::string text = placed(key, takes_list ? "{a: b}" : "[[x]]");
    INFO(text);
    CHECK_FALSE(complaints_about(text).empty());
  }
}

TEST_CASE("null means not set for every key") {
  for (const KeyInfo& key : all_keys()) {
    if (key.required || key.section == "env.*" || key.section == "files[]") continue;
    if (key.section == "healthcheck" && (key.name == "http" || key.name == "exec")) continue;
    const std::string text = placed(key, "~");
    INFO(text);
    CHECK(complaints_about(text).empty());
  }
}

TEST_CASE("the keys are those of the published schema, section by section") {
  const char* const data = std::getenv("FUSE_TEST_DATA");
  std::ifstream in(cat(data == nullptr ? "" : data, "/contract/fusefile-v1.schema.json"));
  if (!in.good()) SKIP("FUSE_TEST_DATA names no folder with contract/fusefile-v1.schema.json");
  const auto schema = nlohmann::json::parse(in);
  const std::map<std::string, const nlohmann::json*> sections{
      {"", &schema},
      {"resources", &schema["$defs"]["resources"]},
      {"placement", &schema["$defs"]["placement"]},
      {"cache", &schema["$defs"]["cache"]},
      {"env.*", &schema["$defs"]["envValue"]},
      {"build[]", &schema["$defs"]["step"]["oneOf"][1]},
      {"services.*", &schema["$defs"]["service"]},
      {"services.*.healthcheck", &schema["$defs"]["healthcheck"]},
      {"files[]", &schema["$defs"]["file"]},
      {"copy[]", &schema["$defs"]["copyEntry"]},
      {"expose[]", &schema["$defs"]["expose"]},
      {"healthcheck", &schema["$defs"]["envHealthcheck"]},
      {"healthcheck.http", &schema["$defs"]["envHealthcheck"]["properties"]["http"]},
      {"desktop", &schema["$defs"]["desktop"]}};
  std::size_t total = 0;
  for (const auto& [section, object] : sections) {
    INFO(section);
    std::set<std::string> theirs;
    for (const auto& [name, value] : (*object)["properties"].items()) theirs.insert(name);
    std::set<std::string> ours;
    for (const KeyInfo* key : keys_of(section)) ours.emplace(key->name);
    CHECK(ours == theirs);
    total += ours.size();
  }
  CHECK(total == all_keys().size());
}

}  // namespace
}  // namespace fuse
