#pragma once

#include <functional>
#include <memory>

#include "orchestrator/api/host_agent.h"

namespace fuse {

// A host whose guests run commands.
class HostWorld {
 public:
  virtual ~HostWorld() = default;
  [[nodiscard]] virtual HostAgent host() = 0;
  // Makes guests see files of this machine by their own paths, for what a test
  // has its guests wait for.
  [[nodiscard]] virtual std::string folder() const = 0;
};

using HostWorldFactory = std::function<std::unique_ptr<HostWorld>()>;

// What every implementation of the host agent's interfaces does, in process or over
// HTTP.  Called from within a TEST_CASE; makes a world for each part.
void check_host_agent(const HostWorldFactory& make_world);

}  // namespace fuse
