#include "base/suggest.h"

#include "tests/catch.h"

namespace fuse {
namespace {

TEST_CASE("suggestions are the nearest words, the one that begins alike first") {
  const std::vector<std::string_view> known{"gpu", "cpus", "region", "as"};
  CHECK(suggestions("cpu", known) == std::vector<std::string_view>{"cpus", "gpu"});
  CHECK(suggestions("gpus", known) == std::vector<std::string_view>{"gpu", "cpus"});
  CHECK(suggestions("REGION", known) == std::vector<std::string_view>{"region"});
  CHECK(suggestions("regoin", known) == std::vector<std::string_view>{"region"});
  CHECK(suggestions("a", known) == std::vector<std::string_view>{"as"});
  CHECK(suggestions("xy", known).empty());
  CHECK(suggestions("", known).empty());
  CHECK(suggestions(std::string(100'000, 'g'), known).empty());
  CHECK(did_you_mean({}).empty());
  CHECK(did_you_mean(std::vector<std::string_view>{"a"}) == ", did you mean \"a\"?");
  CHECK(did_you_mean(std::vector<std::string_view>{"a", "b", "c"}) ==
        ", did you mean \"a\", \"b\" or \"c\"?");
}

}  // namespace
}  // namespace fuse
