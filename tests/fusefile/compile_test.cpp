#include "fusefile/compile.h"

#include "base/text.h"
#include "tests/fusefile/compiling.h"

namespace fuse {
namespace {

constexpr std::string_view prelude =
    "set -eu\nif (set -o pipefail) 2>/dev/null; then set -o pipefail; fi\n";

TEST_CASE("a Fusefile with nothing to do has no startup script") {
  const CompiledFusefile result = compiled("version: 1\nenv: {A: {value: b}}\n");
  CHECK(result.request.startup_script.empty());
  CHECK(result.manifest ==
        R"({"version":"1","machine":{"workspace":"/workspace","env":{"A":{"value":"b"}}},)"
        R"("services":{}})");
  CHECK(base64_decode(result.request.manifest_inline) == result.manifest);
}

TEST_CASE("the text form shows every section that there is") {
  const CompiledFusefile result = compiled(
      "version: 1\nimage: cuda-12\nresources: {gpu: 2, gpu_kind: a100, gpu_profile: 1G.10GB, "
      "region: eu}\n"
      "placement: {host: gpu-1, labels: {a-label-that-is-long: x, z: y}}\n"
      "run: |\n  echo a\n\n  echo b\n"
      "expose: [{port: 80}, {port: 81, as: web}]\n"
      "healthcheck: {http: {port: 80, path: /up}, interval: 5s, retries: 2}\n"
      "desktop: {width: 640, height: 480}\nstartup_timeout: 30s\n");
  CHECK(render(result, CompileFormat::text) ==
        "task id  t\n"
        "startup timeout  30s\n"
        "\n"
        "spec\n"
        "  cpus            0\n"
        "  ram mb          0\n"
        "  storage gb      0\n"
        "  max runtime s   0\n"
        "  idle timeout s  0\n"
        "  image           cuda-12\n"
        "  region          eu\n"
        "  gpus            2\n"
        "  gpu kind        a100\n"
        "  gpu profile     1g.10gb\n"
        "  host            gpu-1\n"
        "  label a-label-that-is-long x\n"
        "  label z         y\n"
        "\n"
        "startup script\n"
        "  set -eu\n"
        "  if (set -o pipefail) 2>/dev/null; then set -o pipefail; fi\n"
        "  mkdir -p '/workspace'\n"
        "  cd '/workspace'\n"
        "  echo a\n"
        "  \n"
        "  echo b\n"
        "  \n"
        "\n"
        "manifest (decoded; sent base64 as manifest_inline)\n"
        "  {\"version\":\"1\",\"machine\":{\"workspace\":\"/workspace\"},\"services\":{}}\n"
        "\n"
        "expose\n"
        "  80\n"
        "  81 as web\n"
        "\n"
        "healthcheck\n"
        "  http            80 /up\n"
        "  interval s      5\n"
        "  retries         2\n"
        "\n"
        "desktop\n"
        "  640x480\n");
}

TEST_CASE("one part can be had alone") {
  const CompiledFusefile result = compiled(
      "version: 1\nresources: {cpus: 2}\nrun: ls\nexpose: [{port: 80, as: web}, {port: 81}]\n"
      "secrets: [b, a]\n");
  CHECK(render_part(result, CompilePart::spec) == "{\n  \"cpus\": 2\n}\n");
  CHECK(render_part(result, CompilePart::manifest) == result.manifest + "\n");
  CHECK(render_part(result, CompilePart::startup_script) ==
        cat(prelude, "mkdir -p '/workspace'\ncd '/workspace'\nls\n"));
  CHECK(render_part(result, CompilePart::expose) == "80 web\n81\n");
  CHECK(render_part(result, CompilePart::secrets) == "a\nb\n");
  CHECK(render_part(compiled("version: 1\n"), CompilePart::startup_script).empty());
  CHECK(compile_part_of("startup-script") == CompilePart::startup_script);
  CHECK_FALSE(compile_part_of("startup_script"));
  CHECK(compile_format_of("yaml") == CompileFormat::yaml);
  CHECK_FALSE(compile_format_of("xml"));
}

TEST_CASE("the task id is the flag, the name or the folder") {
  const Fusefile unnamed = parsed("version: 1\n");
  const Fusefile named = parsed("version: 1\nname: mine\n");
  const auto of = [](std::string_view flag, const Fusefile& file, const char* path) {
    const TaskId task = task_id_of(flag, file, path);
    return cat(task.id, " ", static_cast<int>(task.origin));
  };
  CHECK(of("flag", named, "/a/job/Fusefile") == "flag 0");
  CHECK(of("", named, "/a/job/Fusefile") == "mine 1");
  CHECK(of("", unnamed, "/a/job/Fusefile") == "job 2");
  CHECK(of("", unnamed, "/a/My Job_v2.1!/Fusefile") == "my-job-v2-1 2");
  CHECK(of("", unnamed, "/Fusefile") == "fuse-env 2");
  CHECK(of("", unnamed, "/\xC3\xA9/Fusefile") == "fuse-env 2");
  const std::string dir = std::string(62, 'a') + "--b";
  CHECK(of("", unnamed, cat("/", dir, "/Fusefile").c_str()) == std::string(62, 'a') + " 2");
}

TEST_CASE("what is sent has the same work as phases") {
  const Fusefile file = parsed(
      "version: 1\nworkspace: /w/\nenv: {A: {secret: s}}\n"
      "build:\n  - |\n    # first\n    make deps\n  - {run: make, workdir: sub/./x}\n"
      "  - {run: cmake, workdir: /abs}\n"
      "files: [{path: ./conf/a, content: x, mode: 755}, {path: /etc/b, source: b}]\n"
      "run: [python, it's]\n");
  LoadedSources sources;
  sources.file_bodies[1] = "body";
  sources.copied["/w/tool"] = {"tool", "t", true};
  sources.copied["/w/conf/a"] = {"a", "loses", true};
  sources.copied["/w/plain"] = {"plain", "p", false};
  const CompiledFusefile result = compile(file, "t", sources);
  const auto sent = to_send(file, result, sources, {{"s", "value"}});
  REQUIRE(sent);
  CHECK(sent->startup_script == result.request.startup_script);
  CHECK(sent->secrets == std::map<std::string, std::string>{{"s", "value"}});
  CHECK(sent->files == std::map<std::string, std::string>{{"/etc/b", base64_encode("body")},
                                                          {"/w/conf/a", base64_encode("x")},
                                                          {"/w/plain", base64_encode("p")},
                                                          {"/w/tool", base64_encode("t")}});
  CHECK(sent->file_modes ==
        std::map<std::string, std::string>{{"/w/conf/a", "0755"}, {"/w/tool", "0755"}});
  REQUIRE(sent->phases);
  const auto& build = sent->phases->build;
  REQUIRE(build.size() == 3);
  CHECK(build[0].name == "make deps");
  CHECK(build[0].script == cat(prelude, "# first\nmake deps\n\n"));
  CHECK(build[0].workdir == "/w");
  CHECK(build[1].workdir == "/w/sub/x");
  CHECK(build[2].workdir == "/abs");
  CHECK(sent->phases->run == cat(prelude, "'python' 'it'\\''s'\n"));
  CHECK(sent->phases->workdir == "/w");
  // What compile shows is not changed by it.
  CHECK_FALSE(result.request.phases);
  CHECK(result.request.files.empty());
}

TEST_CASE("there are no phases where the startup script alone can do it") {
  const auto phases = [](std::string_view text) {
    const Fusefile file = parsed(text);
    const auto sent = to_send(file, compile(file, "t"), {}, {});
    REQUIRE(sent);
    return sent->phases ? (sent->files.empty() ? "phases" : "phases and files")
                        : (sent->files.empty() ? "script" : "files");
  };
  CHECK(std::string(phases("version: 1\nrun: ls\n")) == "phases");
  CHECK(std::string(phases("version: 1\nbuild: [ls]\n")) == "phases");
  CHECK(std::string(phases("version: 1\nrun: ls\nfiles: [{path: a, content: b}]\n")) ==
        "phases and files");
  CHECK(std::string(phases("version: 1\nrun: ls\nstartup_timeout: 5s\n")) == "script");
  CHECK(std::string(phases("version: 1\nfiles: [{path: a, content: b}]\n")) == "script");
  CHECK(std::string(phases("version: 1\nrun: ls\nfiles: [{path: /fuse/a, content: b}]\n")) ==
        "script");
}

TEST_CASE("a request takes so many bytes of files") {
  const Fusefile file = parsed("version: 1\nrun: ls\nfiles: [{path: a, content: b}]\n");
  LoadedSources sources;
  sources.copied["/x"] = {"x", std::string(524287, 'x'), false};
  CHECK(to_send(file, compile(file, "t"), sources, {}));
  sources.copied["/y"] = {"y", "y", false};
  const auto over = to_send(file, compile(file, "t"), sources, {});
  REQUIRE_FALSE(over);
  CHECK(over.error().code == ErrorCode::payload_too_large);
  CHECK(over.error().message ==
        "files: too large: files and copy are 524289 bytes in all, over the 524288 byte limit for "
        "one create request");
}

TEST_CASE("the startup script fails with 90 in a build step and runs what it should") {
  const std::string script =
      compiled("version: 1\nworkspace: /tmp\nbuild: ['false']\nrun: echo never\n")
          .request.startup_script;
  CHECK(script == cat(prelude,
                      "mkdir -p '/tmp'\ncd '/tmp'\n"
                      "# fuse: build phase (a failure here exits 90)\n"
                      "trap '[ $? -eq 0 ] || exit 90' EXIT\nfalse\ntrap - EXIT\n"
                      "# fuse: run phase\necho never\n"));
}

}  // namespace
}  // namespace fuse
