// Misspells every word that a Fusefile may hold by one letter, in every way.
#include "base/suggest.h"

#include <algorithm>
#include <set>

#include "base/edit_distance.h"
#include "base/text.h"
#include "fusefile/keys.h"
#include "tests/fusefile/compiling.h"
#include "tests/fusefile/placing.h"

namespace fuse {
namespace {

constexpr std::string_view letters =
    "abcdefghijklmnopqrstuvwxyz0123456789_-ABCDEFGHIJKLMNOPQRSTUVWXYZ";

// One letter left out, put in, replaced or exchanged with its neighbour.
std::set<std::string> misspellings(std::string_view word) {
  std::set<std::string> out;
  for (std::size_t i = 0; i <= word.size(); ++i) {
    const std::string before(word.substr(0, i));
    const std::string_view after = word.substr(i);
    for (const char letter : letters) {
      out.insert(cat(before, letter, after));
      if (!after.empty()) out.insert(cat(before, letter, after.substr(1)));
    }
    if (!after.empty()) out.insert(cat(before, after.substr(1)));
    if (after.size() > 1) out.insert(cat(before, after[1], after[0], after.substr(2)));
  }
  out.erase(std::string(word));
  out.erase("");
  return out;
}

// Whether another word of the same place is as near, so that both are offered.
bool is_like_another(std::string_view wrong, std::string_view right,
                     const std::vector<std::string_view>& known) {
  const std::string written = lowercase(wrong);
  const std::size_t distance = edit_distance(written, right);
  return std::any_of(known.begin(), known.end(), [&](std::string_view other) {
    return other != right && edit_distance(written, other) <= distance;
  });
}

TEST_CASE("a key with one letter wrong is suggested, whichever letter and whichever key") {
  std::size_t tried = 0;
  std::string failures;
  for (const KeyInfo& key : all_keys()) {
    const auto known = names_of(key.section);
    for (const std::string& wrong : misspellings(key.name)) {
      if (find_key(key.section, wrong) != nullptr) continue;
      ++tried;
      const auto found = suggestions(wrong, known);
      const bool right = is_like_another(wrong, key.name, known)
                             ? std::find(found.begin(), found.end(), key.name) != found.end()
                             : found == std::vector<std::string_view>{key.name};
      if (!right) failures += cat(key.section, " ", key.name, " as ", wrong, "\n");
    }
  }
  CHECK(failures == "");
  CHECK(tried > 40'000);
}

// With so many it takes a sample: what is put in is an x.
bool is_in_sample(std::string_view wrong, std::string_view right) {
  return wrong.size() < right.size() || wrong.find('x') != std::string_view::npos;
}

TEST_CASE("the compiler offers the key that was meant, and does not miss it besides") {
  std::size_t tried = 0;
  std::string failures;
  for (const KeyInfo& key : all_keys()) {
    for (const std::string& wrong : misspellings(key.name)) {
      if (find_key(key.section, wrong) != nullptr || !is_in_sample(wrong, key.name)) continue;
      ++tried;
      const std::string text = placed_as(wrong, key, key.example);
      const ParsedFusefile parsed = parse_fusefile(text);
      const auto& all = parsed.diagnostics.all();
      const bool right = all.size() == 1 && all[0].code == ProblemCode::unknown_key &&
                         all[0].message.find(cat("\"", key.name, "\"")) != std::string::npos;
      if (!right) failures += cat(text, complaints_about(text));
    }
  }
  CHECK(failures == "");
  CHECK(tried > 1000);
}

// The words that a value may be: those of the table, and of a flag.
std::vector<std::string_view> words_of(const KeyInfo& key) {
  if (key.type == KeyType::flag) return {"true", "false"};
  return values_of(key);
}

TEST_CASE("a value with one letter wrong is suggested, whichever letter and whichever value") {
  std::size_t tried = 0;
  std::string failures;
  for (const KeyInfo& key : all_keys()) {
    const auto known = words_of(key);
    for (const std::string_view value : known) {
      for (const std::string& wrong : misspellings(value)) {
        if (is_like_another(wrong, value, known)) continue;
        ++tried;
        // In quotes, so that it is a text whatever it looks like.
        const std::string text = placed(key, cat("'", wrong, "'"));
        const ParsedFusefile parsed = parse_fusefile(text);
        const auto& all = parsed.diagnostics.all();
        if (all.size() != 1 || all[0].hint != cat("write ", value)) failures += text;
      }
    }
  }
  CHECK(failures == "");
  CHECK(tried > 5000);
}

}  // namespace
}  // namespace fuse
