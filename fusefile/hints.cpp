#include "fusefile/hints.h"

#include <algorithm>
#include <array>

#include "base/suggest.h"
#include "base/text.h"
#include "fusefile/grammar.h"
#include "fusefile/keys.h"
#include "fusefile/scalar.h"

namespace fuse {

// What to do about a key that is like none here: move it, if it is known in one
// other place, or choose one.
std::string hint_for_stranger(std::string_view name, std::string_view section) {
  const SectionInfo* home = nullptr;
  int homes = 0;
  for (const SectionInfo& other : all_sections()) {
    if (find_key(other.name, name) == nullptr) continue;
    home = &other;
    ++homes;
  }
  if (homes == 1) return cat("move it: ", name, " is a key of ", home->title);
  std::string names;
  for (const std::string_view known : names_of(section)) {
    names += cat(names.empty() ? "" : ", ", known);
  }
  return cat("keys here: ", names);
}

std::string hint_for_flag(std::string_view text) {
  constexpr std::array<std::string_view, 2> words{"true", "false"};
  const auto near = suggestions(text, words);
  return near.empty() ? "write true or false" : cat("write ", near.front());
}

std::string hint_for_size(std::string_view text) {
  if (parse_yaml_float(text) || parse_yaml_integer(text)) {
    return cat("write ", text, "GB or ", text, "MB");
  }
  return "write a number and M, G or T, as in 512MB or 1.5GB: whole MB, at most 2147483647MB";
}

// Days are what people miss most.
std::string hint_for_duration(std::string_view text) {
  if (text.ends_with('d')) {
    const auto days = parse_int(text.substr(0, text.size() - 1));
    if (days && *days > 0 && *days < 10'000) return cat("write ", *days * 24, "h");
  }
  if (parse_int(text)) return cat("write ", text, "s, ", text, "m or ", text, "h");
  return "write numbers with units, as in 90s or 1h30m";
}

std::string hint_for_env_text(std::string_view name, std::string_view text) {
  constexpr std::size_t longest = 10;  // as much as the message shows: it may be a secret
  const bool plain = text.size() <= longest && std::ranges::all_of(text, [](char c) {
                       return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') ||
                              (c >= 'A' && c <= 'Z') || c == '.' || c == '/' || c == '_';
                     });
  if (!is_env_name(name)) name = "NAME";
  return cat("write ", name, ": {value: ", plain ? text : "TEXT", "}, or ", name,
             ": {secret: NAME} for one that is not in the file");
}

std::string_view hint_for_syntax(std::string_view message) {
  struct Known {
    std::string_view beginning;
    std::string_view hint;
  };
  constexpr auto table = std::to_array<Known>({
      {"end of sequence flow", "close the list with ]"},
      {"end of map flow", "close the mapping with }"},
      {"illegal flow end", "remove the bracket: nothing that it could close is open"},
      {"illegal map value", "quote the value: a colon and a blank in it begin another one"},
      {"illegal block entry", "put the list on lines of its own below the key, a dash for each"},
      {"illegal EOF in scalar", "close the quote"},
      {"illegal document indicator", "close the quote before the line with --- or ..."},
      {"unknown token", "quote the value: a plain one cannot begin with this character"},
      {"unknown escape", "double the backslash, or use single quotes"},
      {"bad character found while scanning hex",
       "write \\x and two hex digits, or double the backslash"},
      {"invalid unicode", "write the code of a character, or double the backslash"},
      {"alias not found", "quote the value: a plain * stands for an alias"},
      {"illegal character found while scanning alias",
       "quote the value: a plain * stands for an alias"},
      {"anchor not found", "quote the value: a plain & names an anchor"},
      {"illegal character found while scanning anchor",
       "quote the value: a plain & names an anchor"},
      {"the referenced anchor",
       "name the value first with &NAME, or quote it if no alias is meant"},
      {"an anchor's value contains itself", "give the alias a value that ends before it"},
      {"unexpected character in block scalar", "begin the text on the line below | or >"},
      {"end of map not found", "indent all keys of the mapping alike"},
      {"end of sequence not found", "indent all dashes of the list alike"},
      {"did not find expected <document start>", "remove what stands here: the document has ended"},
  });
  const auto* const known = std::find_if(table.begin(), table.end(), [&](const Known& entry) {
    return message.starts_with(entry.beginning);
  });
  return known == table.end() ? "check the indentation and the quotes here" : known->hint;
}

}  // namespace fuse
