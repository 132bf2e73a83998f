// Walks tests/golden: every folder has a Fusefile and either request.json, what
// `fuse compile --format json` prints for it, or errors.txt, what `fuse
// validate` prints.  FUSE_UPDATE_GOLDEN=1 writes them anew.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/fusefile/compiling.h"

namespace fuse {
namespace {

std::string read(const fs::path& file) {
  std::ifstream in(file, std::ios::binary);
  REQUIRE(in.good());
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<fs::path> golden_dirs() {
  std::vector<fs::path> dirs;
  for (const auto& entry : fs::directory_iterator(fs::path(FUSE_SOURCE_DIR) / "tests/golden")) {
    if (entry.is_directory()) dirs.push_back(entry.path());
  }
  std::sort(dirs.begin(), dirs.end());
  return dirs;
}

// What stands in the golden file of this folder, and under which name.
struct Outcome {
  std::string name{};
  std::string text{};
};

Outcome outcome_of(const fs::path& dir) {
  const std::string text = read(dir / "Fusefile");
  const ParsedFusefile parsed = parse_fusefile(text);
  if (!parsed.file) {
    std::ostringstream out;
    print(out, parsed.diagnostics, "Fusefile", text, {.excerpt = true});
    for (const Diagnostic& problem : parsed.diagnostics.all()) {
      INFO(problem.text());
      CHECK_FALSE(problem.hint.empty());
    }
    return {"errors.txt", out.str()};
  }
  const TaskId task = task_id_of("", *parsed.file, dir / "Fusefile");
  return {"request.json", render(compile(*parsed.file, task.id), CompileFormat::json)};
}

TEST_CASE("every golden Fusefile compiles to its request or has its errors, each with a hint") {
  const auto dirs = golden_dirs();
  CHECK(dirs.size() >= 300);
  const bool update = std::getenv("FUSE_UPDATE_GOLDEN") != nullptr;
  for (const fs::path& dir : dirs) {
    INFO(dir.filename().native());
    const Outcome outcome = outcome_of(dir);
    if (update) std::ofstream(dir / outcome.name, std::ios::binary) << outcome.text;
    const std::string other = outcome.name == "errors.txt" ? "request.json" : "errors.txt";
    CHECK_FALSE(fs::exists(dir / other));
    CHECK(outcome.text == read(dir / outcome.name));
  }
}

TEST_CASE("what another compiler printed for its example is printed here, byte for byte") {
  const char* const data = std::getenv("FUSE_TEST_DATA");
  const fs::path dir = fs::path(data == nullptr ? "" : data) / "contract/golden";
  if (data == nullptr || !fs::exists(dir / "Fusefile")) {
    SKIP("FUSE_TEST_DATA names no folder with contract/golden");
  }
  const CompiledFusefile compiled = compile(parsed(read(dir / "Fusefile")), "compile");
  CHECK(render(compiled, CompileFormat::json) == read(dir / "compile.json"));
  CHECK(render(compiled, CompileFormat::text) == read(dir / "compile.text"));
  CHECK(render(compiled, CompileFormat::yaml) == read(dir / "compile.yaml"));
}

}  // namespace
}  // namespace fuse
