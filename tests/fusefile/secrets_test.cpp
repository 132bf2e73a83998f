#include "fusefile/secrets.h"

#include "base/text.h"
#include "tests/catch.h"

namespace fuse {
namespace {

using Values = std::map<std::string, std::string>;

SecretInputs inputs() {
  return {.environment =
              [](const std::string& name) {
                return name == "HOME_TOKEN" ? std::optional<std::string>("from env") : std::nullopt;
              },
          .read_file = [](const fs::path& file) -> Result<std::string> {
            if (file == "key.pem") return std::string("line 1\nline 2\n");
            return Error{ErrorCode::not_found, cat(file.native(), ": No such file or directory")};
          },
          .read_stdin = [] { return Result<std::string>(std::string("typed\r\n")); }};
}

std::vector<std::string> problems_of(std::vector<std::string> flags) {
  return resolve_secret_flags(flags, inputs()).problems;
}

TEST_CASE("secrets come from the flag, the environment, a file or stdin") {
  const std::vector<std::string> flags{"A=x=y", "HOME_TOKEN", "B=@key.pem", "C=-", "D=", "A=z"};
  const GivenSecrets given = resolve_secret_flags(flags, inputs());
  CHECK(given.problems.empty());
  CHECK(given.values == Values{{"A", "z"},
                               {"B", "line 1\nline 2"},
                               {"C", "typed"},
                               {"D", ""},
                               {"HOME_TOKEN", "from env"}});
}

TEST_CASE("every flag that gives no secret is told, without showing what may be a value") {
  CHECK(
      problems_of({"=hunter2", "", "NOT_THERE", "NOR_THIS", "A=@hunter2", "C=-", "B=-"}) ==
      std::vector<std::string>{
          "invalid key=value \"[REDACTED]\"", "invalid key=value \"[REDACTED]\"",
          "secret \"NOT_THERE\": the environment has no variable of this name",
          "secret \"NOR_THIS\": the environment has no variable of this name",
          "secret \"A\": the file that is named after @ cannot be read: No such file or directory",
          "secret \"B\": stdin can be read for one secret only"});
}

TEST_CASE("a secrets file has NAME=VALUE lines without quoting") {
  const GivenSecrets given = parse_secrets_file("# mine\n\n A=1 \r\nB=\"q\" = #x\nC=\nA=2\n");
  CHECK(given.problems.empty());
  CHECK(given.values == Values{{"A", "2"}, {"B", "\"q\" = #x"}, {"C", ""}});
  // The second line of a key looks like this, and is part of a value.
  const GivenSecrets bad = parse_secrets_file("A=1\nhunter2\n=hunter3\n");
  CHECK(bad.values == Values{{"A", "1"}});
  CHECK(bad.problems == std::vector<std::string>{"line 2: invalid key=value \"[REDACTED]\"",
                                                 "line 3: invalid key=value \"[REDACTED]\""});
}

TEST_CASE("missing secrets are named all at once, with what else went wrong") {
  const std::vector<std::string> required{"a", "b", "c", "d"};
  const Values given{{"a", "1"}, {"c", ""}};
  CHECK(secrets_error(missing_secrets(required, given, false), {}).message ==
        "missing required secrets: b, c, d");
  const std::vector<std::string> problems{"one", "two"};
  CHECK(secrets_error(missing_secrets(required, given, true), problems).message ==
        "missing required secrets: b, d; one; two");
  CHECK(secrets_error({}, problems).message == "one; two");
  CHECK(secrets_error({}, problems).details.at("hint").find("--secrets-file FILE") !=
        std::string::npos);
  CHECK(missing_secrets(required, {{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}}, false).empty());
}

}  // namespace
}  // namespace fuse
