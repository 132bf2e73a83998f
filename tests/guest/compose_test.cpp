#include "guest/compose.h"

#include <set>

#include "base/text.h"
#include "tests/catch.h"

namespace fuse {
namespace {

// The command, with what stands before it, in a guest that has these files.
std::string plan(const std::set<std::string>& files) {
  const auto found =
      plan_compose([&files](const fs::path& path) { return files.contains(path.native()); },
                   "/fuse/compose.yaml");
  if (!found) return cat("error: ", found.error().message);
  std::string text = join(found->environment, " ");
  text += cat(text.empty() ? "" : " ", join(found->argv, " "));
  if (!found->daemon.empty()) text += cat(" behind ", found->daemon.native());
  if (!found->list.empty()) text += " checked";
  return text;
}

using Names = std::vector<std::string>;

TEST_CASE("services are brought up by what the image has") {
  const std::string arguments = " -f /fuse/compose.yaml up -d";
  CHECK(plan({"/usr/bin/podman", "/usr/bin/podman-compose"}) ==
        cat("DISABLE_HC_SYSTEMD=true /usr/bin/podman-compose", arguments, " checked"));
  CHECK(plan({"/usr/bin/podman", "/usr/local/bin/docker-compose"}) ==
        cat("DOCKER_HOST=unix:///run/podman/podman.sock /usr/local/bin/docker-compose", arguments,
            " behind /run/podman/podman.sock"));
  CHECK(plan({"/usr/bin/docker", "/usr/libexec/docker/cli-plugins/docker-compose"}) ==
        cat("/usr/bin/docker compose", arguments, " behind /run/docker.sock"));
  CHECK(plan({"/usr/bin/docker", "/usr/bin/docker-compose"}) ==
        cat("/usr/bin/docker-compose", arguments, " behind /run/docker.sock"));
}

TEST_CASE("an image with nothing to run services with is said to be one") {
  for (const std::set<std::string>& files : {std::set<std::string>{},
                                             {"/usr/bin/podman"},
                                             {"/usr/bin/docker"},
                                             {"/usr/bin/podman-compose"},
                                             {"/usr/bin/docker-compose"}}) {
    CHECK(plan(files) ==
          "error: the image has nothing to run services with, neither podman-compose nor docker "
          "compose; one that has: fuse image bake NAME --with containers");
  }
}

TEST_CASE("a service without a container that was started is found") {
  const std::string file = R"({"services":{"db":{"image":"a"},"web":{"image":"b"},"x":{}}})";
  const auto container = [](const std::string& service, const std::string& state) {
    return cat(R"({"Labels":{"com.docker.compose.service":")", service, R"("},"State":")", state,
               R"(","Pid":1})");
  };
  CHECK(services_not_started(file, "[]") == Names{"db", "web", "x"});
  CHECK(services_not_started(
            file, cat("[", container("web", "running"), ",", container("db", "created"), ",",
                      container("x", "exited"), "]")) == Names{"db"});
  CHECK(services_not_started("services: {db: {}}", "[]").empty());
  CHECK(services_not_started(file, "no list").empty());
  CHECK(services_not_started(file, R"([1, {"Labels": 3}, {"Labels": null}])").size() == 3);
}

TEST_CASE("of what a tool prints the errors tell most") {
  CHECK(telling_lines("a\nError: x\nb\nexit code: 125\nerror y\n") == "Error: x\nerror y");
  CHECK(telling_lines("1\n2\n3\n4\n5\n6\n7\n") == "3\n4\n5\n6\n7");
  CHECK(telling_lines("").empty());
}

}  // namespace
}  // namespace fuse
