#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/locked.h"
#include "orchestrator/api/host_agent.h"

namespace fuse {

// The agents that this process can talk to, by host.  Safe from several threads;
// an agent must outlive its entry's users.
class HostDirectory {
 public:
  void attach(const std::string& id, HostAgent agent);
  [[nodiscard]] std::optional<HostAgent> find(const std::string& id) const;
  [[nodiscard]] std::vector<std::string> ids() const;

 private:
  Locked<std::map<std::string, HostAgent>> agents_;
};

}  // namespace fuse
