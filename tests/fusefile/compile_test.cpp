#include "tests/fusefile/compiling.h"

namespace fuse {
namespace {

TEST_CASE("a Fusefile with nothing to do has no startup script") {
  const CompiledFusefile result = compiled("version: 1\nenv: {A: {value: b}}\n");
  CHECK(result.request.startup_script.empty());
  CHECK(result.manifest ==
        R"({"version":"1","machine":{"workspace":"/workspace","env":{"A":{"value":"b"}}},)"
        R"("services":{}})");
}

}  // namespace
}  // namespace fuse
