#pragma once

#include <functional>
#include <memory>

#include "orchestrator/api/environment_api.h"
#include "tests/fakes/fake_host_agent.h"

namespace fuse {

// An EnvironmentApi with one host behind it, whose operations are being worked
// on while it lives.
class EnvironmentWorld {
 public:
  virtual ~EnvironmentWorld() = default;
  [[nodiscard]] virtual EnvironmentApi& api() = 0;
  [[nodiscard]] virtual FakeHostAgent& host() = 0;
};

using EnvironmentWorldFactory = std::function<std::unique_ptr<EnvironmentWorld>()>;

// What every implementation of EnvironmentApi does, near or far.  Called from
// within a TEST_CASE; makes a world for each part.
void check_environment_api(const EnvironmentWorldFactory& make_world);

}  // namespace fuse
