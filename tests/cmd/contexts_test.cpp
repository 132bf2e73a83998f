#include "cmd/contexts.h"

#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/cmd/world.h"

namespace fuse::cmd {
namespace {

struct ConnectWorld : World {
  ConnectWorld() {
    variables["HOME"] = folder.path().native();
    variables.erase("FUSE_URL");
  }
  [[nodiscard]] fs::path file() const { return folder.path() / ".config/fuse/config.yaml"; }
  Contexts kept() {
    auto contexts = read_contexts(host, file());
    if (!contexts) FAIL(contexts.error().message);
    return *contexts;
  }
  int connect_to(const std::string& url, std::vector<std::string> more = {}) {
    std::vector<std::string> words = {"connect", url, "--no-verify"};
    words.insert(words.end(), more.begin(), more.end());
    return fuse(words);
  }
};

}  // namespace

TEST_CASE("contexts are kept in a file of the user's own, and come back as they were") {
  ConnectWorld world;
  CHECK(world.connect_to("https://fuse.example.com:8443/x/", {"--token", "a \"b\": #c"}) ==
        success);
  struct stat info {};
  REQUIRE(::stat(world.file().c_str(), &info) == 0);
  CHECK((info.st_mode & 0777U) == 0600U);
  REQUIRE(::stat(world.file().parent_path().c_str(), &info) == 0);
  CHECK((info.st_mode & 0777U) == 0700U);
  const Contexts contexts = world.kept();
  CHECK(contexts.current == "fuse.example.com");
  REQUIRE(contexts.all.size() == 1);
  CHECK(contexts.all[0].base_url == "https://fuse.example.com:8443/x");
  CHECK(contexts.all[0].token == "a \"b\": #c");
  CHECK_FALSE(contexts.all[0].master);
}

TEST_CASE("a file that another program wrote is read, unknown keys and all") {
  const auto contexts = parse_contexts(
      "current_context: prod\nother: {a: 1}\ncontexts:\n- name: prod\n  base_url: http://a:1\n"
      "  token: t\n  master: true\n  active_host: gpu-1\n  colour: red\n- {name: b, base_url: "
      "'http://b'}\n",
      "config.yaml");
  REQUIRE(contexts);
  CHECK(contexts->current == "prod");
  REQUIRE(contexts->all.size() == 2);
  CHECK(contexts->all[0].master);
  CHECK(contexts->all[0].active_host == "gpu-1");
  CHECK(contexts->all[1].base_url == "http://b");
  CHECK(parse_contexts("", "f")->all.empty());
  CHECK(parse_contexts("contexts: []\n", "f")->all.empty());
  CHECK(parse_contexts("contexts: [\n", "f").error().message.find("f:") == 0);
  CHECK(parse_contexts("- a\n", "f").error().message == "f: is no file of contexts");
  CHECK(parse_contexts("contexts:\n  - {name: a}\n", "f").error().message ==
        "f:2: a context needs a name and a base_url");
}

TEST_CASE("connecting again keeps the active host, and the newest is the current one") {
  ConnectWorld world;
  CHECK(world.connect_to("http://one:1", {"--name", "a"}) == success);
  Contexts contexts = world.kept();
  contexts.all[0].active_host = "gpu-1";
  REQUIRE(write_contexts(world.host, world.file(), contexts));
  CHECK(world.connect_to("http://two:2", {"--name", "b"}) == success);
  CHECK(world.kept().current == "b");
  CHECK(world.connect_to("http://three:3", {"--name", "a", "--master"}) == success);
  contexts = world.kept();
  CHECK(contexts.current == "a");
  CHECK(contexts.find("a")->active_host == "gpu-1");
  CHECK(contexts.find("a")->base_url == "http://three:3");
  CHECK(contexts.find("a")->master);
}

TEST_CASE("an address that is none, and a server that is not there, connect to nothing") {
  ConnectWorld world;
  CHECK(world.connect_to("fuse.example.com") == wrong_usage);
  CHECK(world.fuse({"connect", "http://127.0.0.1:1"}) == not_reached);
  CHECK_FALSE(fs::exists(world.file()));
}

TEST_CASE("contexts are listed without their tokens, chosen and removed") {
  ConnectWorld world;
  CHECK(world.connect_to("http://one:1", {"--token", "sesame", "--master"}) == success);
  CHECK(world.connect_to("http://two:2") == success);
  CHECK(world.fuse({"-o", "json", "context", "list"}) == success);
  const auto list = nlohmann::json::parse(world.out.str());
  REQUIRE(list.size() == 2);
  CHECK(list[0] == nlohmann::json({{"name", "one"},
                                   {"base_url", "http://one:1"},
                                   {"master", true},
                                   {"active_host", ""},
                                   {"current", false}}));
  world.out.str("");
  CHECK(world.fuse({"context", "list"}) == success);
  CHECK(world.out.str().find("sesame") == std::string::npos);
  CHECK(world.fuse({"context", "use", "one"}) == success);
  world.out.str("");
  CHECK(world.fuse({"context", "current"}) == success);
  CHECK(world.out.str() == "one\n");
  CHECK(world.fuse({"context", "use", "three"}) == failed);
  CHECK(world.fuse({"context", "remove", "one"}) == success);
  CHECK(world.kept().current.empty());
  CHECK(world.fuse({"context", "current"}) == failed);
  CHECK(world.fuse({"context", "remove", "one"}) == failed);
}

TEST_CASE("a context that is asked for and is not there is an error, not this machine") {
  ConnectWorld world;
  CHECK(world.fuse({"--context", "nowhere", "status"}) == failed);
  CHECK(world.err.str().find("there is no context \"nowhere\"") != std::string::npos);
}

}  // namespace fuse::cmd
