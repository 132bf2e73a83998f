// The first line is a path, the rest a .fuseignore.  Taking the path back at
// the end has to win over everything before, whatever that says.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include "fusefile/ignore.h"

namespace {

// The pattern that matches this path alone.
std::string exactly(std::string_view path) {
  std::string pattern = "/";
  for (const char c : path) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(text.find('\n'), text.size());
  const std::string_view path = text.substr(0, end);
  fuse::IgnoreRules rules;
  if (!rules.add(text.substr(std::min(end + 1, text.size())))) return 0;
  // A pattern for folders applies to nothing else.
  if (rules.add("*/\n") && !rules.ignores(path, true)) std::abort();

  // Names as a file system has them, and none that the reader would trim.
  const bool plain = !path.empty() && path.front() != '/' && path.back() != '/' &&
                     path.find("//") == std::string_view::npos &&
                     path.find_first_of("\r\t \0", 0, 4) == std::string_view::npos;
  if (!plain) return 0;
  if (!rules.add("!" + exactly(path))) std::abort();
  if (rules.ignores(path, false) || rules.ignores(path, true)) std::abort();
  if (!rules.add(exactly(path) + "/")) std::abort();
  if (rules.ignores(path, false) || !rules.ignores(path, true)) std::abort();
  return 0;
}
