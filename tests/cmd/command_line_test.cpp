#include <nlohmann/json.hpp>

#include "base/version.h"
#include "tests/cmd/world.h"

namespace fuse::cmd {

TEST_CASE("the version is printed by a flag and by a command, also as JSON") {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"-v"}, {"--version"}, {"version"}}) {
    World world;
    CHECK(world.fuse(words) == success);
    CHECK(world.out.str() == "fuse " + std::string(version()) + "\n");
    CHECK(world.err.str().empty());
  }
  World world;
  CHECK(world.fuse({"version", "-o", "json"}) == success);
  const auto json = nlohmann::json::parse(world.out.str());
  CHECK(json["version"] == std::string(version()));
  CHECK(json["build_id"] == build_id());
}

TEST_CASE("a misspelt command is refused with the one that was meant") {
  World world;
  CHECK(world.fuse({"validte"}) == wrong_usage);
  CHECK(world.err.str() ==
        "error: there is no command \"validte\", did you mean \"validate\"?\n"
        "  see: fuse --help\n");
  CHECK(world.out.str().empty());

  World below;
  CHECK(below.fuse({"-o", "json", "env", "lst"}) == wrong_usage);
  CHECK(below.err.str() ==
        "error: there is no command \"lst\", did you mean \"list\"?\n"
        "  see: fuse environment --help\n");
}

TEST_CASE("a misspelt option is refused with the one that was meant") {
  World world;
  CHECK(world.fuse({"validate", "--quite"}) == wrong_usage);
  CHECK(world.err.str() ==
        "error: there is no option \"--quite\", did you mean \"--quiet\"?\n"
        "  see: fuse validate --help\n");
}

TEST_CASE("what is missing is said") {
  World command;
  CHECK(command.fuse({"environment"}) == wrong_usage);
  CHECK(command.err.str().find("error: which command? One of: list, get, watch, follow, "
                               "exec, shell, ssh, drain, rotate-token, destroy, rm, delete") == 0);
  World nothing;
  CHECK(nothing.fuse({}) == wrong_usage);
  CHECK(nothing.out.str().empty());
  CHECK(nothing.err.str().find("Usage: fuse") != std::string::npos);
  World id;
  CHECK(id.fuse({"logs"}) == wrong_usage);
  CHECK(id.err.str().find("ID is required") != std::string::npos);
  World form;
  CHECK(form.fuse({"version", "-o", "xml"}) == wrong_usage);
  CHECK(form.err.str().find("xml") != std::string::npos);
}

TEST_CASE("wrong usage of a command that exits with a guest's code is 125") {
  for (const char* command : {"run", "exec", "shell"}) {
    World world;
    CHECK(world.fuse({command, "--no-such-option"}) == fuse_failed);
  }
  World below;
  CHECK(below.fuse({"environment", "exec"}) == fuse_failed);
}

TEST_CASE("words behind two dashes are for commands that take them") {
  World world;
  CHECK(world.fuse({"version", "--", "x"}) == wrong_usage);
  CHECK(world.err.str().find("nothing is expected after \"--\"") != std::string::npos);
}

TEST_CASE("help goes to stdout and names the command's whole path") {
  World top;
  CHECK(top.fuse({"--help"}) == success);
  for (const char* command : {"run", "up", "logs", "stop", "ps", "exec", "shell", "rm",
                              "environment", "validate", "compile", "image", "local", "version"}) {
    const std::size_t at = top.out.str().find(std::string("\n  ") + command);
    REQUIRE(at != std::string::npos);
    const char next = top.out.str()[at + 3 + std::string(command).size()];
    CHECK((next == ' ' || next == ','));
  }
  CHECK(top.err.str().empty());
  World below;
  CHECK(below.fuse({"environment", "list", "--help"}) == success);
  CHECK(below.out.str().find("fuse environment list") != std::string::npos);
  World hidden;
  CHECK(hidden.fuse({"local", "--help"}) == success);
  CHECK(hidden.out.str().find("\n  serve ") == std::string::npos);
}

TEST_CASE("exit codes follow the kind of error") {
  CHECK(exit_code_of(Error{ErrorCode::unreachable, ""}) == not_reached);
  CHECK(exit_code_of(Error{ErrorCode::unauthorized, ""}) == not_allowed);
  CHECK(exit_code_of(Error{ErrorCode::forbidden, ""}) == not_allowed);
  CHECK(exit_code_of(Error{ErrorCode::conflict, ""}) == in_conflict);
  CHECK(exit_code_of(Error{ErrorCode::not_found, ""}) == failed);
  CHECK(exit_code_of(Error{ErrorCode::unavailable, ""}) == not_reached);
  CHECK(exit_code_of(Error{ErrorCode::unavailable, "", {{"reason", "placement"}}}) == no_placement);
}

TEST_CASE("an orchestrator that cannot be reached is said so, with its code") {
  for (const auto& [words, code] : std::vector<std::pair<std::vector<std::string>, int>>{
           {{"ps"}, not_reached},
           {{"stop", "x"}, not_reached},
           {{"logs", "x"}, not_reached},
           {{"logs", "--exit-code", "x"}, fuse_failed},
           {{"rm", "-y", "x"}, not_reached},
           {{"exec", "x", "--", "ls"}, fuse_failed},
           {{"shell", "x"}, fuse_failed}}) {
    World world;
    world.connect_error = Error{ErrorCode::unreachable, "cannot reach http://x: refused"};
    CHECK(world.fuse(words) == code);
    CHECK(world.err.str() == "error: cannot reach http://x: refused\n");
    CHECK(world.out.str().empty());
  }
}

}  // namespace fuse::cmd
