#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace fuse {

// What the value of a key has to be.
enum class KeyType {
  whole,  // a whole number
  cpus,   // the same, with words of its own
  text,   // any scalar, kept as written
  flag,
  size,
  duration,
  texts,     // list of scalars
  wholes,    // list of whole numbers
  text_map,  // names of the user's to scalars
  map,       // a mapping with the keys of `target`
  map_of,    // names of the user's to mappings with the keys of `target`
  list_of,   // list of mappings with the keys of `target`
  steps,     // list of texts, or mappings with the keys of `target`
  command,   // shell text or an argv
};

// "list of texts", for the reference pages.
std::string_view words_for(KeyType type);

// One key of a Fusefile.  The table of these is what the reader knows, what it
// suggests from, and what the schema and the reference page are made of.
struct KeyInfo {
  std::string_view section;  // "" at the top, else as in "resources", "files[]", "services.*"
  std::string_view name;
  KeyType type = KeyType::text;
  std::string_view target{};  // the section below, where there is one
  bool required = false;
  std::string_view rule{};     // what it means and what is allowed, in one sentence
  std::string_view example{};  // as YAML, on one line
  std::string_view schema{};   // members that its JSON schema has besides the type's
  std::string_view values{};   // "a, b": the only ones, if they are so few
  std::string_view since = "1";
};

// One group of keys: those of one mapping.
struct SectionInfo {
  std::string_view name;
  std::string_view title;     // what it is, as in "a service"
  std::string_view schema{};  // members that its JSON schema has besides the keys
};
std::span<const SectionInfo> all_sections();

// All of them, section by section.
std::span<const KeyInfo> all_keys();
std::vector<const KeyInfo*> keys_of(std::string_view section);
std::vector<std::string_view> names_of(std::string_view section);
const KeyInfo* find_key(std::string_view section, std::string_view name);
// The words of `values`.
std::vector<std::string_view> values_of(const KeyInfo& key);

}  // namespace fuse
