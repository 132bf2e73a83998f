#include "orchestrator/host_directory.h"

namespace fuse {

void HostDirectory::attach(const std::string& id, HostAgent agent) {
  agents_.with([&](auto& agents) {
    agents.erase(id);
    agents.emplace(id, agent);
  });
}

std::optional<HostAgent> HostDirectory::find(const std::string& id) const {
  return agents_.with([&](const auto& agents) {
    const auto found = agents.find(id);
    return found == agents.end() ? std::optional<HostAgent>()
                                 : std::optional<HostAgent>(found->second);
  });
}

std::vector<std::string> HostDirectory::ids() const {
  return agents_.with([](const auto& agents) {
    std::vector<std::string> out;
    for (const auto& [id, agent] : agents) out.push_back(id);
    return out;
  });
}

}  // namespace fuse
