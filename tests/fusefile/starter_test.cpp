#include "fusefile/starter.h"

#include "base/text.h"
#include "fusefile/ignore.h"
#include "fusefile/keys.h"
#include "tests/fusefile/compiling.h"

namespace fuse {
namespace {

// The lines "# key: example", by their numbers from 0.
std::vector<std::size_t> commented_keys(const std::vector<std::string>& lines) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < lines.size(); ++i) {
    const std::string_view line = trim(lines[i]);
    if (!line.starts_with("# ")) continue;
    const std::string name(line.substr(2, line.find(':') - 2));
    const bool is_resource = lines[i].starts_with("  #");
    if (find_key(is_resource ? "resources" : "", name) != nullptr) found.push_back(i);
  }
  return found;
}

std::string uncommented(std::vector<std::string> lines, std::size_t which) {
  lines[which].erase(lines[which].find("# "), 2);
  return join(lines, "\n");
}

TEST_CASE("the starter compiles, and asks for what it says") {
  const CompiledFusefile plain = compiled(starter_fusefile(false));
  CHECK(plain.request.spec.image == "base");
  CHECK(plain.request.spec.gpus == 0);
  CHECK(plain.request.spec.ram_mb == 512);
  CHECK(plain.required_secrets.empty());
  CHECK(plain.request.startup_script.find("hello from") != std::string::npos);
  const CompiledFusefile gpu = compiled(starter_fusefile(true));
  CHECK(gpu.request.spec.gpus == 1);
  CHECK(gpu.request.startup_script.find("nvidia-smi") != std::string::npos);
}

TEST_CASE("the starter names every key but the old ones") {
  const std::string text = starter_fusefile(false);
  for (const char* section : {"", "resources"}) {
    for (const std::string_view name : names_of(section)) {
      INFO(name);
      const bool named =
          text.find(cat("\n", *section == '\0' ? "" : "  ", name, ":")) != std::string::npos ||
          text.find(cat("# ", name, ": ")) != std::string::npos;
      CHECK(named == (name != "setup" && name != "storage"));
    }
  }
  for (const std::string& line : split(text, '\n')) CHECK(line.size() < 100);
}

TEST_CASE("each commented key of the starter may be taken in as it stands") {
  for (const bool gpu : {false, true}) {
    const auto lines = split(starter_fusefile(gpu), '\n');
    const auto keys = commented_keys(lines);
    CHECK(keys.size() >= 15);
    for (const std::size_t key : keys) {
      const std::string text = uncommented(lines, key);
      INFO(lines[key]);
      // A slice needs the GPU that it is of.
      const bool needs_gpu = !gpu && lines[key].find("gpu_profile:") != std::string::npos;
      CHECK(complaints_about(text).empty() != needs_gpu);
    }
  }
}

TEST_CASE("the starter's .fuseignore is one, and shows the defaults") {
  IgnoreRules rules;
  CHECK(rules.add(starter_ignore_file()));
  CHECK(rules.ignores("a/b.log", false));
  CHECK(starter_ignore_file().find("#   .git/\n#   node_modules/\n") != std::string::npos);
}

}  // namespace
}  // namespace fuse
