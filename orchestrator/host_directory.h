#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>

#include "base/locked.h"
#include "orchestrator/api/host_agent.h"
#include "orchestrator/store.h"

namespace fuse {

// Where a host's agent is reached.
struct AgentAddress {
  std::string host_id{};
  std::string url{};
  std::string token{};
  Backend backend = Backend::qemu;
  bool operator==(const AgentAddress&) const = default;
};

// Makes the client of an agent, without asking it anything.
using ConnectAgent = std::function<Result<HostAgent>(const AgentAddress& address)>;

// The agents of the hosts: those of this process, and clients of the others as the
// database has them, made when they are first needed.  Safe from several threads.
class HostDirectory {
 public:
  explicit HostDirectory(Store& store, ConnectAgent connect = {})
      : store_(store), connect_(std::move(connect)) {}

  // Who may have VMs on a host.
  enum class Users { several, we_alone };
  // A host whose agent lives in this process; it must outlive its users.
  void attach(const std::string& id, HostAgent agent, Users users = Users::several);
  [[nodiscard]] bool is_local(const std::string& id) const;
  [[nodiscard]] bool is_ours_alone(const std::string& id) const;

  // unreachable when there is no such host or no way to connect to it, and while
  // it is known not to answer.  Not within a transaction.
  [[nodiscard]] Result<HostAgent> find(const std::string& id) const;
  // The same, also of a host that does not answer.
  [[nodiscard]] Result<HostAgent> find_silent(const std::string& id) const;

  // Whether a host answered when it was last asked; asking it is left to whoever
  // calls this.  The result tells whether that is news.
  enum class News { yes, no };
  News note(const std::string& id, bool answers);

 private:
  struct Client {
    AgentAddress address{};
    HostAgent agent;
  };
  struct Known {
    std::map<std::string, HostAgent> local{};
    std::set<std::string> ours_alone{};
    std::map<std::string, Client> clients{};
    std::set<std::string> silent{};
  };
  Store& store_;
  ConnectAgent connect_;
  mutable Locked<Known> known_;
};

}  // namespace fuse
