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

std::string refusal(std::vector<std::string> flags) {
  const auto values = resolve_secret_flags(flags, inputs());
  return values ? "accepted" : values.error().message;
}

TEST_CASE("secrets come from the flag, the environment, a file or stdin") {
  const std::vector<std::string> flags{"A=x=y", "HOME_TOKEN", "B=@key.pem", "C=-", "D=", "A=z"};
  CHECK(resolve_secret_flags(flags, inputs()).value() == Values{{"A", "z"},
                                                                {"B", "line 1\nline 2"},
                                                                {"C", "typed"},
                                                                {"D", ""},
                                                                {"HOME_TOKEN", "from env"}});
}

TEST_CASE("a flag that gives no secret is refused without showing a value") {
  CHECK(refusal({"=hunter2"}) == "invalid key=value \"=[REDACTED]\"");
  CHECK(refusal({""}) == "invalid key=value \"\"");
  CHECK(refusal({"NOT_THERE"}) ==
        "secret \"NOT_THERE\": the environment has no variable of this name");
  CHECK(refusal({"A=@none"}) == "secret \"A\": none: No such file or directory");
  CHECK(refusal({"A=-", "B=-"}) == "secret \"B\": stdin can be read for one secret only");
}

TEST_CASE("a secrets file has NAME=VALUE lines without quoting") {
  CHECK(parse_secrets_file("# mine\n\n A=1 \r\nB=\"q\" = #x\nC=\n").value() ==
        Values{{"A", "1"}, {"B", "\"q\" = #x"}, {"C", ""}});
  CHECK(parse_secrets_file("A=1\nplain\n").error().message == "invalid key=value \"plain\"");
  CHECK(parse_secrets_file("=x").error().message == "invalid key=value \"=[REDACTED]\"");
}

TEST_CASE("missing secrets are named all at once") {
  const std::vector<std::string> required{"a", "b", "c", "d"};
  const Values given{{"a", "1"}, {"c", ""}};
  CHECK(missing_secrets_error(missing_secrets(required, given, false)).message ==
        "missing required secrets: b, c, d");
  CHECK(missing_secrets_error(missing_secrets(required, given, true)).message ==
        "missing required secrets: b, d");
  CHECK(missing_secrets(required, {{"a", "1"}, {"b", "2"}, {"c", "3"}, {"d", "4"}}, false).empty());
}

}  // namespace
}  // namespace fuse
