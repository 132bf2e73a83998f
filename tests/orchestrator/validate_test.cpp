#include "orchestrator/validate.h"

#include "base/text.h"
#include "tests/catch.h"

namespace fuse {
namespace {

CreateEnvironmentRequest request() {
  return {.task_id = "t"};
}

Error problem(const CreateEnvironmentRequest& wanted) {
  const auto host_exists = [](const std::string& id) -> Result<void> {
    if (id == "known") return {};
    return Error{ErrorCode::not_found, cat("spec.host_id: host \"", id, "\" is not registered")};
  };
  const auto done = validate(wanted, {host_exists, std::chrono::seconds(55)});
  return done ? Error{ErrorCode::internal, "valid"} : done.error();
}

std::string text(const CreateEnvironmentRequest& wanted) {
  return problem(wanted).message;
}

TEST_CASE("a task id alone is a valid request") {
  CHECK(text(request()) == "valid");
  CHECK(text({}) == "task_id is required");
}

TEST_CASE("every gpu rule that is broken is told") {
  auto wanted = request();
  wanted.spec = {.gpu_kind = "rtx4090", .gpu_profile = "9g.10gb"};
  CHECK(text(wanted) ==
        "spec.gpu_profile: invalid MIG profile \"9g.10gb\" (expected mig-parted form like "
        "\"1g.10gb\"); spec.gpu_profile requires spec.gpus >= 1 (the count of MIG instances); "
        "spec.gpu_profile \"9g.10gb\" is not valid for gpu_kind \"rtx4090\" (that gpu does not "
        "support MIG)");
  wanted.spec = {.gpus = -1};
  CHECK(text(wanted) == "spec.gpus must not be negative");
  wanted.spec = {.gpus = 1, .gpu_profile = "1G.10GB+me"};
  CHECK(text(wanted) == "valid");
  CHECK(with_defaults(wanted).spec.gpu_profile == "1g.10gb+me");
  for (const auto* bad : {"1g", "1g.gb", "1g.10", "8g.10gb", "0g.5gb", "1g.10gb+gfx", "x1g.10gb"}) {
    wanted.spec = {.gpus = 1, .gpu_profile = bad};
    CHECK(problem(wanted).code == ErrorCode::invalid_argument);
  }
}

TEST_CASE("labels, host and amounts are checked in the wire's words") {
  auto wanted = request();
  wanted.spec.labels = {{"-a", "b"}};
  CHECK(text(wanted) == "spec.labels: invalid label key \"-a\"");
  wanted.spec.labels = {{"a", ""}};
  CHECK(text(wanted) == "spec.labels[a]: invalid label value \"\"");
  wanted.spec.labels = {{"a.b_c-d", "1"}};
  wanted.spec.host_id = "h";
  CHECK(text(wanted) == "spec.host_id: host \"h\" is not registered");
  CHECK(problem(wanted).code == ErrorCode::not_found);
  wanted.spec.host_id = "known";
  wanted.spec.max_runtime_seconds = -1;
  CHECK(text(wanted) == "spec.max_runtime_seconds must not be negative");
  wanted.spec.max_runtime_seconds = 0;
  wanted.spec.idle_timeout_seconds = -1;
  CHECK(text(wanted) == "spec.idle_timeout_seconds must not be negative");
  wanted.spec.idle_timeout_seconds = 59;
  CHECK(text(wanted) ==
        "spec.idle_timeout_seconds must be at least 60 (idle detection runs on the reconcile "
        "loop)");
}

TEST_CASE("a healthcheck, a desktop and a startup timeout are checked in the wire's words") {
  auto wanted = request();
  wanted.healthcheck = HealthcheckSpec{};
  CHECK(text(wanted) == "healthcheck: http or exec is required");
  wanted.healthcheck->exec = {"true"};
  wanted.healthcheck->http = HealthcheckHttp{.port = 0};
  CHECK(text(wanted) == "healthcheck: http and exec are mutually exclusive");
  wanted.healthcheck->exec = {};
  CHECK(text(wanted) == "healthcheck.http.port must be between 1 and 65535");
  wanted.healthcheck->http->port = 80;
  wanted.healthcheck->interval_seconds = 2;
  wanted.healthcheck->timeout_seconds = 3;
  CHECK(text(wanted) ==
        "healthcheck.timeout_seconds (3) must not exceed healthcheck.interval_seconds (2)");
  wanted.healthcheck.reset();
  wanted.desktop = DesktopSpec{.width = 100, .height = 400};
  CHECK(text(wanted) == "desktop.width must be between 320 and 3840, got 100");
  wanted.desktop.reset();
  wanted.startup_script_timeout_seconds = -1;
  CHECK(text(wanted) == "startup_script_timeout_seconds must not be negative");
  wanted.startup_script_timeout_seconds = 90;
  CHECK(text(wanted) ==
        "startup script timeout exceeds the configured maximum: requested 1m30s, maximum is 55s");
  wanted.startup_script_timeout_seconds = 55;
  CHECK(text(wanted) == "valid");
}

TEST_CASE("files have clean absolute paths outside /fuse, base64 and a bounded size") {
  const auto with = [](const std::string& path, const std::string& body) {
    auto wanted = request();
    wanted.files = {{path, body}};
    return wanted;
  };
  CHECK(text(with("a/b", "")) == "files: \"a/b\" must be an absolute guest path");
  CHECK(text(with("/a/../b", "")) == "files: \"/a/../b\" is not a clean path (want \"/b\")");
  CHECK(text(with("/a/", "")) == "files: \"/a/\" is not a clean path (want \"/a\")");
  CHECK(text(with("//a", "")) == "files: \"//a\" is not a clean path (want \"/a\")");
  CHECK(text(with("/fuse/x", "")) ==
        "files: \"/fuse/x\" is under /fuse, which is reserved for the guest agent's own files");
  CHECK(text(with("/fuse", "")) ==
        "files: \"/fuse\" is under /fuse, which is reserved for the guest agent's own files");
  CHECK(text(with("/fusebox", "")) == "valid");
  CHECK(problem(with("/a", "not base64!")).code == ErrorCode::invalid_argument);
  CHECK(text(with("/a", base64_encode(std::string(524'288, 'x')))) == "valid");
  const Error large = problem(with("/a", base64_encode(std::string(524'289, 'x'))));
  CHECK(large.code == ErrorCode::payload_too_large);
  CHECK(large.message ==
        "files: too large: files total more than the 524288 byte limit for one create request");
  auto moded = with("/a", "");
  moded.file_modes = {{"/a", "0755"}};
  CHECK(text(moded) == "valid");
  moded.file_modes = {{"/a", "0888"}};
  CHECK(text(moded) == "file_modes: \"/a\": invalid octal mode \"0888\" (expected e.g. \"0644\")");
  moded.file_modes = {{"/b", "0755"}};
  CHECK(text(moded) == "file_modes: \"/b\" is not one of the files");
}

TEST_CASE("every secret that the manifest names must come with the request") {
  auto wanted = request();
  wanted.manifest_inline = base64_encode(
      R"({"machine":{"env":{"A":{"secret":"b"}}},"services":{"db":{"env":{"P":{"secret":"a"}}}}})");
  CHECK(text(wanted) == "secrets validation failed: missing required secrets: a, b");
  wanted.secrets = {{"a", "1"}, {"b", "2"}};
  CHECK(text(wanted) == "valid");
  wanted.manifest_inline = "%%%";
  CHECK(text(wanted).rfind("decode manifest_inline: ", 0) == 0);
  CHECK(problem(wanted).code == ErrorCode::invalid_argument);
  wanted.manifest_inline = base64_encode("[1]");
  CHECK(text(wanted).rfind("decode manifest_inline: ", 0) == 0);
  wanted.manifest_inline = "";
  wanted.secrets = {{"a", std::string(65'537, 'x')}};
  CHECK(text(wanted) == "secrets validation failed: secret \"a\" longer than 65536 bytes");
}

TEST_CASE("an exec has one of cmd and shell, and a time limit within bounds") {
  CHECK(checked_exec({}).error().message == "one of cmd or shell is required");
  CHECK(checked_exec({.cmd = {"a"}, .shell = "b"}).error().message ==
        "cmd and shell are mutually exclusive");
  const auto shell = checked_exec({.shell = "a | b"});
  CHECK(shell->cmd == std::vector<std::string>{"sh", "-lc", "a | b"});
  CHECK(shell->shell.empty());
  CHECK(shell->timeout_ms == 60'000);
  CHECK(checked_exec({.cmd = {"a"}, .timeout_ms = -5})->timeout_ms == 60'000);
  CHECK(checked_exec({.cmd = {"a"}, .timeout_ms = 700'000})->timeout_ms == 600'000);
  CHECK(checked_exec({.cmd = {"a"}, .timeout_ms = 5})->timeout_ms == 5);
}

TEST_CASE("one cpu and a gigabyte of memory are what is not asked for otherwise") {
  CHECK(with_defaults(request()).spec.cpus == 1);
  CHECK(with_defaults(request()).spec.ram_mb == 1024);
  auto wanted = request();
  wanted.spec = {.cpus = 3, .ram_mb = 512};
  CHECK(with_defaults(wanted).spec.cpus == 3);
  CHECK(with_defaults(wanted).spec.ram_mb == 512);
}

}  // namespace
}  // namespace fuse
