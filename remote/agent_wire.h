#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_client.h"
#include "orchestrator/api/agent_json.h"

namespace fuse {

// One host agent as its HTTP client sees it: calls, refusals in words, and what
// the agent on the other side can do.  Safe from several threads.
class AgentWire {
 public:
  explicit AgentWire(std::unique_ptr<HttpClient> http) : http_(std::move(http)) {}

  // The answer when its status is 2xx; else the error that it carries: the agent's
  // own text with the code of its status, unauthorized when it rejected the token,
  // route_not_found when it does not know the route.
  Result<HttpReply> send(const HttpCall& call);
  [[nodiscard]] Error refusal(const HttpCall& call, int status, std::string_view body) const;
  [[nodiscard]] HttpClient& http() { return *http_; }
  [[nodiscard]] std::string place() const { return http_->place(); }

  // What the agent says of itself: asked once, and again after it was unreachable.
  Result<AgentHealth> health();
  Result<AgentHealth> ask_health();

  // "/v1/vm/ID" for a vm_id or a uid.  Agents that know no uids have them at the
  // end of their VMs' names, and are asked for their list once.
  Result<std::string> vm_path(const std::string& id);
  // Takes down that a VM of such an agent is there, or is no more.
  void learn(const VmInfo& vm);
  void forget(const std::string& id);

 private:
  void note_outcome(const Error& error);
  std::optional<std::string> known_name(const std::string& id) const;

  std::unique_ptr<HttpClient> http_;
  mutable std::mutex mutex_;
  std::optional<AgentHealth> health_{};
  std::map<std::string, std::string> names_{};  // uid -> vm_id
};

// A call with a JSON body.
HttpCall agent_call(std::string method, std::string target, const nlohmann::ordered_json& body);

// What is said of an answer that is not the one expected; it names the place.
Error not_understood(const AgentWire& wire, const Error& error);

// The name of a VM on an agent that knows no uids, and the uid in such a name.
std::string name_with_uid(std::string_view name, std::string_view uid);
std::optional<std::string> uid_in_name(std::string_view vm_id);

}  // namespace fuse
