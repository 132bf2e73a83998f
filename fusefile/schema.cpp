#include "fusefile/schema.h"

#include <cctype>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/text.h"
#include "fusefile/keys.h"

namespace fuse {

namespace {

using Json = nlohmann::ordered_json;

// The section as the name of a definition: "services.healthcheck".
std::string definition_name(std::string_view section) {
  std::string name(section);
  for (const std::string_view part : {".*", "[]"}) {
    if (const auto at = name.find(part); at != std::string::npos) name.erase(at, part.size());
  }
  return name;
}

Json reference(std::string_view section) {
  return {{"$ref", cat("#/$defs/", definition_name(section))}};
}

Json list_of(Json items) {
  return {{"type", "array"}, {"items", std::move(items)}};
}

Json map_of(Json values) {
  return {{"type", "object"}, {"additionalProperties", std::move(values)}};
}

// Plain scalars of other kinds are taken as they are written.
Json text_schema() {
  return {{"type", Json::array({"string", "number", "boolean"})}};
}

Json size_schema() {
  return {{"type", "string"},
          {"pattern",
           "^[ \\t]*[0-9]+(\\.[0-9]+)?[ \\t]*([MmGgTt]|[MmGgTt][Bb]|[MmGgTt][Ii][Bb])[ \\t]*$"}};
}

Json duration_schema() {
  const Json written = {
      {"type", "string"},
      {"pattern", "^[-+]?(0|(([0-9]+\\.?[0-9]*|\\.[0-9]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)$"}};
  return {{"anyOf", Json::array({written, Json{{"const", 0}}})}};
}

Json command_schema() {
  Json shell = text_schema();
  Json argv = list_of({{"type", "string"}});
  argv["minItems"] = 1;
  return {{"anyOf", Json::array({std::move(shell), std::move(argv)})}};
}

Json type_schema(const KeyInfo& key) {
  switch (key.type) {
    case KeyType::whole:
    case KeyType::cpus:
      return {{"type", "integer"}};
    case KeyType::text:
      return text_schema();
    case KeyType::flag:
      return {{"type", "boolean"}};
    case KeyType::size:
      return size_schema();
    case KeyType::duration:
      return duration_schema();
    case KeyType::texts:
      return list_of(text_schema());
    case KeyType::wholes:
      return list_of({{"type", "integer"}});
    case KeyType::text_map:
      return map_of(text_schema());
    case KeyType::map:
      return reference(key.target);
    case KeyType::map_of:
      return map_of(reference(key.target));
    case KeyType::list_of:
      return list_of(reference(key.target));
    case KeyType::steps:
      return list_of({{"anyOf", Json::array({text_schema(), reference(key.target)})}});
    case KeyType::command:
      return command_schema();
  }
  return {};
}

// Adds the members that the table has as JSON text.
void add_members(Json& schema, std::string_view members) {
  if (members.empty()) return;
  const Json more = Json::parse(cat("{", members, "}"), nullptr, false);
  for (const auto& [name, value] : more.items()) schema[name] = value;
}

Json section_schema(const SectionInfo& section) {
  Json properties = Json::object();
  Json required = Json::array();
  for (const KeyInfo* key : keys_of(section.name)) {
    Json schema = {{"description", key->rule}};
    schema.update(type_schema(*key));
    add_members(schema, key->schema);
    for (const std::string_view value : values_of(*key)) schema["enum"].push_back(value);
    properties[std::string(key->name)] = std::move(schema);
    if (key->required) required.push_back(key->name);
  }
  Json object = {{"type", "object"}, {"additionalProperties", false}};
  if (!required.empty()) object["required"] = std::move(required);
  add_members(object, section.schema);
  object["properties"] = std::move(properties);
  return object;
}

// "A service" for "a service"; names of keys stay as they are.
std::string capitalised(std::string_view title) {
  std::string out(title);
  const bool is_phrase = out.find(' ') != std::string::npos;
  if (is_phrase) out[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(out[0])));
  return out;
}

}  // namespace

std::string fusefile_schema() {
  Json schema = {{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                 {"title", "Fusefile, version 1"}};
  Json definitions = Json::object();
  for (const SectionInfo& section : all_sections()) {
    if (section.name.empty()) {
      schema.update(section_schema(section));
    } else {
      definitions[definition_name(section.name)] = section_schema(section);
    }
  }
  schema["$defs"] = std::move(definitions);
  return schema.dump(2) + '\n';
}

std::string fusefile_reference() {
  std::string page =
      "# Keys of a Fusefile\n\nMade from the table that the compiler reads by, as are `fuse "
      "schema` "
      "and `fuse init`. \"Since\" is\nthe version of the format that first had the key. What a "
      "file means as a whole is in\n[fusefile.md](fusefile.md).\n";
  for (const SectionInfo& section : all_sections()) {
    page += cat("\n## ", capitalised(section.title), "\n\n",
                "| key | value | meaning | example | since |\n| --- | --- | --- | --- | --- |\n");
    for (const KeyInfo* key : keys_of(section.name)) {
      page += cat("| `", key->name, "`", key->required ? " (required)" : "", " | ",
                  words_for(key->type), " | ", key->rule, " | `", key->name, ": ", key->example,
                  "` | ", key->since, " |\n");
    }
  }
  return page;
}

}  // namespace fuse
