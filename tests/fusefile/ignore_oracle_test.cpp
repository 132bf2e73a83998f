// Compares what `copy` takes of a folder with what git would, given the same
// patterns, where the rules of both are the same.
#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <random>
#include <set>

#include "base/command.h"
#include "base/posix_host.h"
#include "base/text.h"
#include "fusefile/ignore.h"
#include "tests/base/folder.h"
#include "tests/fusefile/compiling.h"

namespace fuse {
namespace {

std::string git(const fs::path& dir, std::vector<std::string> arguments) {
  PosixHost host;
  SpawnSpec spec{.argv = {"git", "-c", "core.excludesFile=/dev/null"}, .directory = dir};
  spec.argv.insert(spec.argv.end(), arguments.begin(), arguments.end());
  const auto out = require_command(host, std::move(spec));
  INFO((out ? "" : out.error().message));
  REQUIRE(out);
  return *out;
}

void write(const fs::path& file, std::string_view text) {
  fs::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << text;
}

// Names that patterns are likely to be about, three folders deep.
void make_tree(const fs::path& dir) {
  constexpr auto names = std::to_array<std::string_view>(
      {"a", "b", "ab", "abc", "a.log", ".env", "build", "x[1]", "a*b", "a b", "#c", "!d"});
  for (const std::string_view first : names) {
    write(dir / first / "a.log", "");
    for (const std::string_view second : {"a", "b", "build", "x[1]"}) {
      write(dir / first / second / "a.log", "");
      write(dir / first / second / "b", "");
      write(dir / first / second / "abc" / "a", "");
    }
    write(dir / cat("file-", first), "");
    write(dir / first / cat("f-", first), "");
  }
}

// One name of a pattern, or ** for any number of names.
std::string made_up_name(const std::function<std::size_t(std::size_t)>& number) {
  constexpr auto parts =
      std::to_array<std::string_view>({"a", "b", "ab", "abc", ".log", "*", "?", "[a-b]", "[^a]",
                                       "x[[]1]", "\\*", "build", "file-", ".env", " "});
  if (number(5) == 0) return "**";
  std::string name;
  for (std::size_t count = 1 + number(2); count > 0; --count) {
    const std::string_view part = parts[number(parts.size() - 1)];
    // Two stars inside a name mean something else to git than to us.
    if (part != "*" || !name.ends_with('*')) name += part;
  }
  return name;
}

// Lines of .gitignore, without what git reads otherwise: [!..], brackets that
// are not closed, a backslash at the end, tabs at the end.
std::string made_up_patterns(std::mt19937& random) {
  const auto number = [&random](std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most)(random);
  };
  std::string out;
  for (std::size_t lines = 1 + number(5); lines > 0; --lines) {
    if (number(2) == 0) out += '!';
    if (number(3) == 0) out += '/';
    out += made_up_name(number);
    for (std::size_t more = number(2); more > 0; --more) out += cat("/", made_up_name(number));
    out += number(3) == 0 ? "/\n" : "\n";
  }
  return out;
}

std::set<std::string> copied_from(const fs::path& dir) {
  PosixSourceTree tree;
  Diagnostics diagnostics;
  const Fusefile file = parsed("version: 1\nworkspace: /w\ncopy: [{from: ., to: .}]\n");
  const LoadedSources loaded = load_sources(file, dir / "Fusefile", tree, {}, diagnostics);
  REQUIRE(diagnostics.ok());
  std::set<std::string> out;
  for (const auto& [path, copied] : loaded.copied) {
    // git never lists its own folder, whatever the patterns say.
    if (!path.starts_with("/w/.git/")) out.insert(path.substr(3));
  }
  return out;
}

std::set<std::string> seen_by_git(const fs::path& dir) {
  const auto names = split(git(dir, {"ls-files", "--others", "--exclude-standard", "-z"}), '\0');
  std::set<std::string> out(names.begin(), names.end());
  out.erase("");
  return out;
}

void check_same(const fs::path& dir, const std::string& patterns) {
  INFO(patterns);
  write(dir / ".fuseignore", patterns);
  write(dir / ".gitignore", cat(IgnoreRules::defaults(), patterns));
  const auto ours = copied_from(dir);
  const auto theirs = seen_by_git(dir);
  std::vector<std::string> difference;
  std::set_symmetric_difference(ours.begin(), ours.end(), theirs.begin(), theirs.end(),
                                std::back_inserter(difference));
  CHECK(join(difference, "\n") == "");
}

TEST_CASE("patterns leave out of a copy what git would leave out") {
  const Folder folder;
  const fs::path dir = fs::canonical(folder.path());
  git(dir, {"init", "-q"});
  make_tree(dir);
  for (const char* patterns : {"",
                               "*\n!*.log\n",
                               "*\n!*/\n!*.log\n",
                               "/a\n",
                               "a/\n",
                               "/*/a\n",
                               "a/**\n",
                               "**/a\n",
                               "a/**/b\n",
                               "**\n!a\n",
                               "/**/abc/\n",
                               "!build/\n",
                               "build\n!build\n",
                               "*.log\n!/a/a.log\n",
                               "\\#c\n\\!d\n",
                               "# a\n\n  \nb  \n",
                               "a b\n",
                               "x[[]1]\n",
                               "a\\*b\n",

                               "/\n",
                               "!\n",
                               "*/\n",
                               "[^a]\n",
                               "?\n",
                               "!.env\n",
                               "b/a.log\n",
                               "/b/*\n!/b/a\n"}) {
    check_same(dir, patterns);
  }
  std::mt19937 random(20'240'601);
  for (int round = 0; round < 60; ++round) check_same(dir, made_up_patterns(random));
}

}  // namespace
}  // namespace fuse
