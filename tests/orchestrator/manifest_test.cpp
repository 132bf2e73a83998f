#include "orchestrator/manifest.h"

#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/text.h"
#include "orchestrator/deliveries.h"
#include "tests/orchestrator/engine.h"

namespace fuse {
namespace {

const std::map<std::string, std::string> secrets = {{"pg", "s3cret$x"}};

Manifest manifest_of(const std::string& text) {
  return must(parse_manifest(base64_encode(text)));
}

TEST_CASE("without a manifest there is an empty one") {
  CHECK(must(parse_manifest("")).text ==
        R"({"version":"1","machine":{"workspace":"/workspace"},"services":{}})");
}

TEST_CASE("the env file quotes values, fills in secrets and leaves out what no shell takes") {
  const Manifest manifest = manifest_of(
      R"({"machine":{"env":{"B":{"value":"it's"},"A":{"secret":"pg"},"a-b":{"value":"x"},
          "1X":{"value":"x"}}}})");
  CHECK(env_file(resolved_env(manifest, secrets)) == "A='s3cret$x'\nB='it'\\''s'\n");
}

TEST_CASE("services become a compose file in which every string is quoted") {
  const Manifest manifest = manifest_of(
      R"({"services":{"db":{"image":"postgres:16","ports":[22,5432],
          "env":{"POSTGRES_PASSWORD":{"secret":"pg"},"MODE":{"value":"no"}},
          "command":["sh","-c","echo $HOME"],"restart":"no",
          "healthcheck":{"test":["CMD","true"],"interval":"5s","retries":3},
          "depends_on":["cache"]},"cache":{"image":"redis"}}})");
  const auto compose = must(parse_json(compose_file(manifest, secrets)));
  CHECK(compose.dump() ==
        R"({"services":{"cache":{"image":"redis"},"db":{"command":["sh","-c","echo $$HOME"],)"
        R"("depends_on":["cache"],"environment":{"MODE":"no","POSTGRES_PASSWORD":"s3cret$$x"},)"
        R"("healthcheck":{"interval":"5s","retries":3,"test":["CMD","true"]},)"
        R"("image":"postgres:16","ports":["22:22","5432:5432"],"restart":"no"}}})");
  CHECK(compose_file(manifest_of("{}"), secrets).empty());
}

TEST_CASE("our own files win over the request's") {
  CreateEnvironmentRequest request{.task_id = "t"};
  request.files = {{"/fuse/secrets.json", base64_encode("mine")}, {"/a", base64_encode("a")}};
  request.desktop = DesktopSpec{.width = 800, .height = 600};
  std::map<std::string, std::string> files;
  for (const UploadFile& file : must(guest_files(request, must(parse_manifest(""))))) {
    CHECK(files.emplace(file.path, file.bytes).second);
  }
  CHECK(files.at("/fuse/secrets.json") == "{}");
  CHECK(files.at("/fuse/desktop.json") == R"({"width":800,"height":600})");
  CHECK(files.at("/a") == "a");
  CHECK(files.count("/fuse/env") == 0);
  CHECK(files.count("/fuse/compose.yaml") == 0);
}

TEST_CASE("secrets of eight bytes or more are blanked, the longest first") {
  CHECK(redacted("x 12345678 y 123456789 z 1234567",
                 {{"a", "12345678"}, {"b", "123456789"}, {"c", "1234567"}}) ==
        "x [REDACTED] y [REDACTED] z 1234567");
  CHECK(redacted("[REDACTED]", {{"a", "REDACTED"}}) == "[[REDACTED]]");
}

}  // namespace
}  // namespace fuse
