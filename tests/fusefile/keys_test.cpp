#include "fusefile/keys.h"

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "base/text.h"
#include "tests/fusefile/compiling.h"
#include "tests/fusefile/placing.h"

namespace fuse {
namespace {

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
