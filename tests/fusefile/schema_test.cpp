#include "fusefile/schema.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "fusefile/keys.h"
#include "tests/catch.h"

namespace fuse {
namespace {

const nlohmann::json& section_of(const nlohmann::json& schema, const std::string& name) {
  return name.empty() ? schema : schema.at("$defs").at(name);
}

TEST_CASE("the schema has every key with what the table says of it") {
  const auto schema = nlohmann::json::parse(fusefile_schema());
  CHECK(schema.at("additionalProperties") == false);
  CHECK(schema.at("required") == nlohmann::json::array({"version"}));
  CHECK(schema.at("properties").at("version").at("const") == 1);
  CHECK(schema.at("not") == nlohmann::json::parse(R"({"required": ["build", "setup"]})"));
  CHECK(
      section_of(schema, "resources").at("properties").at("gpu") ==
      nlohmann::json::parse(
          R"({"description": "How many GPUs; with gpu_profile, how many MIG instances. Never a fraction.",
                "type": "integer", "minimum": 0})"));
  CHECK(section_of(schema, "files").at("oneOf").size() == 2);
  std::size_t keys = 0;
  std::size_t sections = 1;
  keys += schema.at("properties").size();
  for (const auto& [name, section] : schema.at("$defs").items()) {
    ++sections;
    keys += section.at("properties").size();
  }
  CHECK(keys == all_keys().size());
  CHECK(sections == all_sections().size());
}

// Every reference has to lead somewhere, and every fragment of the table is
// JSON: one that was not would have left its members out.
void check_references(const nlohmann::json& schema, const nlohmann::json& value) {
  if (value.is_object() && value.contains("$ref")) {
    const std::string name = value.at("$ref").get<std::string>();
    REQUIRE(name.starts_with("#/$defs/"));
    CHECK(schema.at("$defs").contains(name.substr(8)));
  }
  for (const auto& part : value) {
    if (part.is_structured()) check_references(schema, part);
  }
}

TEST_CASE("what the schema refers to is there") {
  const auto schema = nlohmann::json::parse(fusefile_schema());
  check_references(schema, schema);
  for (const KeyInfo& key : all_keys()) {
    INFO(key.name);
    CHECK(nlohmann::json::accept(cat("{", key.schema, "}")));
  }
  for (const SectionInfo& section : all_sections()) {
    CHECK(nlohmann::json::accept(cat("{", section.schema, "}")));
  }
}

TEST_CASE("the reference has a line for every key") {
  const std::string page = fusefile_reference();
  CHECK(page.starts_with("# Keys of a Fusefile\n\n"));
  CHECK(page.find("\n## The file\n\n") != std::string::npos);
  CHECK(page.find("\n## A service\n\n") != std::string::npos);
  CHECK(page.find("| `gpu` | whole number | How many GPUs; with gpu_profile, how many MIG "
                  "instances. Never a fraction. | `gpu: 1` | 1 |\n") != std::string::npos);
  std::size_t lines = 0;
  for (const std::string& line : split(page, '\n')) lines += line.starts_with("| `") ? 1U : 0U;
  CHECK(lines == all_keys().size());
}

TEST_CASE("the page of keys in docs/ is the table's") {
  const std::filesystem::path file =
      std::filesystem::path(FUSE_SOURCE_DIR) / "docs/fusefile-keys.md";
  if (std::getenv("FUSE_UPDATE_GOLDEN") != nullptr) {
    std::ofstream(file, std::ios::binary) << fusefile_reference();
  }
  std::ifstream in(file, std::ios::binary);
  CHECK(std::string(std::istreambuf_iterator<char>(in), {}) == fusefile_reference());
}

TEST_CASE("a key with few values has them in the schema") {
  const auto schema = nlohmann::json::parse(fusefile_schema());
  CHECK(section_of(schema, "services").at("properties").at("restart").at("enum") ==
        nlohmann::json({"no", "always", "on-failure", "unless-stopped"}));
}

}  // namespace
}  // namespace fuse
