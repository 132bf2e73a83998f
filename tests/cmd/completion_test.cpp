#include <algorithm>
#include <set>

#include "base/command.h"
#include "base/text.h"
#include "tests/cmd/world.h"

namespace fuse::cmd {

namespace {

// What completion offers in place of the last word.
std::set<std::string> offered(World& world, std::vector<std::string> words) {
  world.out.str("");
  std::vector<std::string> arguments = {"complete-words", "--"};
  std::ranges::move(words, std::back_inserter(arguments));
  CHECK(world.fuse(arguments) == success);
  std::set<std::string> names;
  for (const std::string& line : split(world.out.str(), '\n')) {
    if (!line.empty()) names.insert(line.substr(0, line.find('\t')));
  }
  return names;
}

// Every command below `words`, and the flags of each, are on offer and parse.
int walk(const std::vector<std::string>& words) {
  int visited = 1;
  World world;
  auto flags = words;
  flags.emplace_back("-");
  const auto known = offered(world, flags);
  CHECK(known.contains("--help"));
  CHECK(known.contains("--output"));
  world.out.str("");
  auto help = words;
  help.emplace_back("--help");
  CHECK(world.fuse(help) == success);
  const std::string text = world.out.str();
  for (const std::string& flag : known) {
    if (words.empty()) CHECK(text.find(flag) != std::string::npos);
  }
  auto below = words;
  below.emplace_back("");
  World next;
  for (const std::string& command : offered(next, below)) {
    CHECK(text.find(command) != std::string::npos);
    auto path = words;
    path.push_back(command);
    visited += walk(path);
  }
  return visited;
}

}  // namespace

TEST_CASE("completion offers every command and every option, wherever one stands") {
  CHECK(walk({}) > 30);
  World world;
  CHECK(offered(world, {"local", ""}) == std::set<std::string>{"up", "down", "status"});
  CHECK(offered(world, {"-o", "json", "image", ""}) ==
        std::set<std::string>{"list", "bake", "verify", "prune"});
  CHECK(offered(world, {"run", "--"}).contains("--stop-on-signal"));
  CHECK(offered(world, {"run", "--secret", ""}).empty());
  CHECK_FALSE(offered(world, {""}).contains("complete-words"));
}

TEST_CASE("completion offers the environments there are where one is wanted") {
  World world;
  world.variables["FUSE_URL"] = "http://fuse.example";
  CHECK(offered(world, {"logs", "-f", ""}) == std::set<std::string>{"fuse-train"});
  CHECK(offered(world, {"env", "get", "fu"}) == std::set<std::string>{"fuse-train"});
  CHECK(offered(world, {"validate", ""}).empty());
}

TEST_CASE("completion starts nothing to find out what there is") {
  World world;
  world.variables["FUSE_STATE"] = (world.folder.path() / "state").native();
  CHECK(offered(world, {"logs", ""}).empty());
  CHECK_FALSE(fs::exists(world.folder.path() / "state"));
  CHECK(world.environments.listed.empty());
}

TEST_CASE("the scripts of the source tree are those that fuse prints") {
  for (const auto& [shell, file] : std::map<std::string, std::string>{
           {"bash", "fuse.bash"}, {"zsh", "_fuse"}, {"fish", "fuse.fish"}}) {
    World world;
    CHECK(world.fuse({"completion", shell}) == success);
    const auto text = world.host.read_file(fs::path(FUSE_SOURCE_DIR) / "completions" / file);
    REQUIRE(text);
    CHECK(*text == world.out.str());
  }
  World world;
  CHECK(world.fuse({"completion", "tcsh"}) == wrong_usage);
}

TEST_CASE("bash completes by what fuse offers") {
  World world;
  const std::string program =
      "fuse() { printf '%s\\n' \"$@\" >&2; printf 'list\\tx y\\nlogs\\tz\\nget\\tg\\n'; }\n"
      "complete() { :; }\n"
      "source completions/fuse.bash\n"
      "COMP_WORDS=(fuse env l) COMP_CWORD=2\n"
      "_fuse 2>/dev/null\n"
      "printf '%s\\n' \"${COMPREPLY[@]}\"\n";
  const auto done =
      require_command(world.host, {.argv = {"bash", "-c", program}, .directory = FUSE_SOURCE_DIR});
  REQUIRE(done);
  CHECK(*done == "list\nlogs\n");
}

}  // namespace fuse::cmd
