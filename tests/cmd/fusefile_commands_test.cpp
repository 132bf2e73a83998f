#include <sys/stat.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/text.h"
#include "tests/cmd/world.h"

namespace fuse::cmd {

namespace {

constexpr const char* good =
    "version: 1\nname: train\nimage: micro\nresources:\n  cpus: 2\n"
    "env:\n  TOKEN: { secret: TOKEN }\nrun: echo hi\n";

}  // namespace

TEST_CASE("a Fusefile is found by any of its five names, in their order") {
  World world;
  CHECK(world.fuse({"validate"}) == wrong_usage);
  CHECK(world.err.str() ==
        cat("error: there is no Fusefile in ", world.folder.path().native(),
            ": looked for Fusefile, Fusefile.yaml, Fusefile.yml, fusefile.yaml and fusefile.yml\n"
            "  name one: -f FILE\n"));
  for (const char* name :
       {"fusefile.yml", "fusefile.yaml", "Fusefile.yml", "Fusefile.yaml", "Fusefile"}) {
    world.folder.write(name, good);
    World again;
    std::filesystem::copy(world.folder.path(), again.folder.path(),
                          std::filesystem::copy_options::overwrite_existing |
                              std::filesystem::copy_options::recursive);
    CHECK(again.fuse({"validate"}) == success);
    CHECK(again.err.str() == cat(name, " is valid\n"));
  }
}

TEST_CASE("a Fusefile is named by -f or by an argument, not by both") {
  World world;
  world.folder.write("jobs/a.yaml", good);
  CHECK(world.fuse({"validate", "-f", "jobs/a.yaml"}) == success);
  CHECK(world.fuse({"validate", "jobs/a.yaml"}) == success);
  CHECK(world.fuse({"validate", "-f", "jobs/a.yaml", "jobs/a.yaml"}) == wrong_usage);
  CHECK(world.fuse({"validate", "jobs"}) == wrong_usage);
  CHECK(world.fuse({"validate", "jobs/b.yaml"}) == wrong_usage);
  CHECK(world.err.str().find("jobs is a folder, not a Fusefile\n"
                             "  name the file in it: -f jobs/Fusefile\n") != std::string::npos);
  CHECK(world.err.str().find("jobs/b.yaml: No such file or directory") != std::string::npos);
}

TEST_CASE("validate prints every problem with its place on stdout and exits with 1") {
  World world;
  world.folder.write("Fusefile", "version: 2\nresources:\n  gpu: -1\n");
  CHECK(world.fuse({"validate"}) == failed);
  CHECK(world.out.str() ==
        "Fusefile:1:10: version: must be 1\n"
        "Fusefile:3:8: resources.gpu: must not be negative\n");
  CHECK(world.err.str() ==
        "Fusefile:1:10: hint: this fuse reads version 1 only\n"
        "Fusefile:3:8: hint: write how many GPUs, or leave gpu out for none\n");

  World quiet;
  quiet.folder.write("Fusefile", "version: 2\n");
  CHECK(quiet.fuse({"validate", "--quiet"}) == failed);
  CHECK(quiet.out.str().empty());
  CHECK(quiet.err.str().empty());
}

TEST_CASE("validate on a terminal shows the line and points at the place") {
  World world;
  world.terminal.out = true;
  world.variables["NO_COLOR"] = "1";
  world.folder.write("Fusefile", "version: 2\n");
  CHECK(world.fuse({"validate"}) == failed);
  CHECK(world.out.str().find("version: 2\n") != std::string::npos);
  CHECK(world.out.str().find("^") != std::string::npos);
  CHECK(world.out.str().find("  hint: this fuse reads") != std::string::npos);
  CHECK(world.out.str().find('\x1b') == std::string::npos);
  CHECK(world.err.str().empty());
}

TEST_CASE("validate as JSON has the wire's shape") {
  World world;
  world.folder.write("Fusefile", "version: 1\nsecrets: [B, A]\nnme: x\n");
  CHECK(world.fuse({"validate", "-o", "json"}) == failed);
  const auto bad = nlohmann::json::parse(world.out.str());
  CHECK(bad["path"] == "Fusefile");
  CHECK(bad["valid"] == false);
  REQUIRE(bad["errors"].size() == 1);
  CHECK(bad["errors"][0]["line"] == 3);
  CHECK(bad["errors"][0]["column"] == 1);
  CHECK(bad["errors"][0]["code"] == "F010");
  CHECK(bad["errors"][0]["hint"] == "write name");
  CHECK(bad["required_secrets"] == nlohmann::json({"A", "B"}));
  CHECK(bad["errors"][0]["message"].get<std::string>().find("field nme not found") !=
        std::string::npos);

  World fine;
  fine.folder.write("Fusefile", good);
  CHECK(fine.fuse({"validate", "-o", "json"}) == success);
  CHECK(nlohmann::json::parse(fine.out.str()) ==
        nlohmann::json({{"path", "Fusefile"},
                        {"valid", true},
                        {"errors", nlohmann::json::array()},
                        {"required_secrets", {"TOKEN"}}}));
}

TEST_CASE("validate checks secrets when it is asked to") {
  World world;
  world.folder.write("Fusefile", good);
  CHECK(world.fuse({"validate", "--check-secrets"}) == failed);
  CHECK(world.out.str() == "Fusefile:7:20: secrets: required secret \"TOKEN\" is not set\n");
  world.folder.write("Fusefile", cat("unheard_of: 1\nfiles: [{path: a, source: b}]\n", good));
  world.out.str("");
  CHECK(world.fuse({"validate", "--check-secrets"}) == failed);
  CHECK(world.out.str() ==
        "Fusefile:1:1: unheard_of: field unheard_of not found\n"
        "Fusefile:2:27: files[0].source: \"b\" does not exist\n"
        "Fusefile:9:20: secrets: required secret \"TOKEN\" is not set\n");

  World given;
  given.folder.write("Fusefile", good);
  given.folder.write("values", "# mine\nTOKEN=abc\n");
  CHECK(given.fuse({"validate", "--check-secrets", "--secrets-file", "values"}) == success);
  CHECK(given.fuse({"validate", "--check-secrets", "--secret", "TOKEN=x"}) == success);
  given.variables["TOKEN"] = "from outside";
  CHECK(given.fuse({"validate", "--check-secrets", "--secret", "TOKEN"}) == success);
  CHECK(given.fuse({"validate", "--check-secrets", "--secrets-file", "none"}) == wrong_usage);
}

TEST_CASE("compile prints the request, with the files that are copied and without secrets") {
  World world;
  world.folder.write("Fusefile", cat(good, "copy:\n  - { from: a.txt, to: a.txt }\n"));
  world.folder.write("a.txt", "hello");
  CHECK(world.fuse({"compile", "-o", "json", "--task-id", "other"}) == success);
  for (const char* id : {"A b", "-x", "a_b", ""}) {
    CHECK(world.fuse({"compile", cat("--task-id=", id)}) == wrong_usage);
  }
  const auto json = nlohmann::json::parse(world.out.str());
  CHECK(json["task_id"] == "other");
  CHECK(json["spec"] == nlohmann::json({{"cpus", 2}, {"image", "micro"}}));
  CHECK(json["files"] == nlohmann::json({{"/workspace/a.txt", base64_encode("hello")}}));
  CHECK(json["secrets"] == nlohmann::json::object());
  CHECK(json["required_secrets"] == nlohmann::json({"TOKEN"}));
  CHECK_FALSE(json.contains("phases"));

  World part;
  part.folder.write("Fusefile", good);
  CHECK(part.fuse({"compile", "--only", "secrets"}) == success);
  CHECK(part.out.str() == "TOKEN\n");
}

TEST_CASE("a dry run of up prints what compile prints, and what copy carries where") {
  World world;
  world.folder.write("Fusefile", cat(good, "copy:\n  - { from: src, to: app }\n"));
  world.folder.write("src/lib/a.py", "print()");
  world.folder.write("src/.env", "A=1");
  CHECK(world.fuse({"compile"}) == success);
  const std::string compiled = world.out.str();
  world.out.str("");
  world.err.str("");
  CHECK(world.fuse({"up", "--dry-run", "--show-copy"}) == success);
  CHECK(world.out.str() == compiled);
  CHECK(world.err.str() == "  copy  src/lib/a.py -> /workspace/app/lib/a.py (7 B)\n");
  CHECK(world.environments.created.empty());
}

TEST_CASE("compile refuses forms that are none, and two at once") {
  World world;
  world.folder.write("Fusefile", good);
  CHECK(world.fuse({"compile", "--format", "xml"}) == wrong_usage);
  CHECK(world.fuse({"compile", "--only", "all"}) == wrong_usage);
  CHECK(world.fuse({"compile", "--only", "spec", "--format", "json"}) == wrong_usage);
  CHECK(world.out.str().empty());
  CHECK(world.err.str().find("invalid --format \"xml\"") != std::string::npos);
  CHECK(world.err.str().find("invalid --only \"all\"") != std::string::npos);
  CHECK(world.err.str().find("--only and --format are mutually exclusive") != std::string::npos);
}

TEST_CASE("compile reports problems on stderr with a caret, and prints nothing") {
  World world;
  world.folder.write("Fusefile", "version: 2\n");
  CHECK(world.fuse({"compile"}) == failed);
  CHECK(world.out.str().empty());
  CHECK(world.err.str().find("Fusefile:1:10: ") == 0);
  CHECK(world.err.str().find('^') != std::string::npos);
}

TEST_CASE("init writes a Fusefile that validates, and a .fuseignore") {
  World world;
  CHECK(world.fuse({"init"}) == success);
  CHECK(world.out.str() == "wrote Fusefile\nwrote .fuseignore\n");
  CHECK(world.err.str() == "next: fuse run\n      its image is made once: fuse image bake base\n");
  CHECK(world.fuse({"validate"}) == success);
  CHECK(world.fuse({"compile", "--only", "spec"}) == success);

  World gpu;
  CHECK(gpu.fuse({"init", "--gpu", "-f", "jobs.yaml", "-o", "json"}) == success);
  CHECK(nlohmann::json::parse(gpu.out.str()) ==
        nlohmann::json({{"files", {"jobs.yaml", ".fuseignore"}}}));
  CHECK(gpu.err.str().find("next: fuse run jobs.yaml   which needs a host with a GPU\n") == 0);
  CHECK(gpu.fuse({"validate", "jobs.yaml"}) == success);
}

TEST_CASE("init never changes a file that is there, of any of the names, unless forced") {
  for (const char* name : {"Fusefile", "Fusefile.yaml", "fusefile.yml", ".fuseignore"}) {
    World world;
    world.folder.write(name, "mine");
    CHECK(world.fuse({"init"}) == in_conflict);
    CHECK(world.err.str() == cat("error: ", name,
                                 " is there already, and nothing was changed\n"
                                 "  name another file, or replace it: --force\n"));
    CHECK(world.out.str().empty());
    std::size_t files = 0;
    for (const auto& entry : fs::directory_iterator(world.folder.path())) {
      CHECK(entry.path().filename() == name);
      ++files;
    }
    CHECK(files == 1);
    CHECK(world.host.read_file(world.folder.path() / name).value() == "mine");
    CHECK(world.fuse({"init", "--force"}) == success);
    CHECK(world.fuse({"validate", "Fusefile"}) == success);
  }
  World dangling;
  fs::create_symlink("nowhere", dangling.folder.path() / "Fusefile");
  CHECK(dangling.fuse({"init"}) == in_conflict);
}

TEST_CASE("init takes a folder or a file as its argument") {
  World world;
  fs::create_directory(world.folder.path() / "job");
  CHECK(world.fuse({"init", "job"}) == success);
  CHECK(world.out.str() == "wrote job/Fusefile\nwrote job/.fuseignore\n");
  CHECK(world.fuse({"validate", "job/Fusefile"}) == success);
  CHECK(world.fuse({"init", "a", "-f", "b"}) == wrong_usage);
  CHECK(world.fuse({"init", "no/where/Fusefile"}) == failed);
}

TEST_CASE("schema prints a JSON Schema") {
  World world;
  CHECK(world.fuse({"schema"}) == success);
  const auto schema = nlohmann::json::parse(world.out.str());
  CHECK(schema["$schema"] == "https://json-schema.org/draft/2020-12/schema");
  CHECK(schema["properties"].contains("run"));
  CHECK(world.err.str().empty());
}

TEST_CASE("a Fusefile may be a pipe, and one without an end is refused") {
  World world;
  const fs::path pipe = world.folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::jthread writer([&] { std::ofstream(pipe) << good; });
  CHECK(world.fuse({"validate", "pipe"}) == success);
  CHECK(world.fuse({"validate", "/dev/zero"}) == wrong_usage);
  CHECK(world.err.str().find("/dev/zero: more than 67108864 bytes") != std::string::npos);
}

}  // namespace fuse::cmd
