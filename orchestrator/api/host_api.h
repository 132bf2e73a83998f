#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "orchestrator/api/types.h"

namespace fuse {

// What an operator says about a host.  What is 0 or empty in the capacity is
// asked of the host's agent; vm_count never is.
struct RegisterHostRequest {
  std::string id{};
  std::string url{};  // of its agent: http or https, no user info, query or fragment
  std::string token{};
  std::string region{};
  Backend backend = Backend::firecracker;
  std::map<std::string, std::string> labels{};
  HostCapacity capacity{};
};

struct HostPage {
  std::vector<HostInfo> hosts{};
  std::string next_cursor{};  // empty on the last page
};

enum class HostAction {
  cordon,    // takes nothing new
  uncordon,  // takes work again
  drain,     // takes nothing new and is meant to become empty
};

// Why a host cannot take a spec.  `code` is stable: pin, state, unreachable,
// region, arch, backend, label, cpu, memory, storage, slots, gpu-kind, gpu-count,
// gpu-group, gpu-limit, mig-profile, mig-busy, mig-capable.  `text` goes on after
// "host X ".
struct PlacementReason {
  std::string code{};
  std::string text{};
  std::string have{};
  std::string want{};
};

// What placing says about one host: reasons against it in the order of the gates,
// none when it could take the spec.
struct HostVerdict {
  std::string host_id{};
  std::vector<PlacementReason> reasons{};
  std::int64_t score = 0;
  std::string gpu_summary{};  // what its probe of GPUs looked at and found
};

struct Explanation {
  std::string host_id{};  // where it would go; empty: nowhere
  std::string message{};  // why not, as a create would say
  std::vector<HostVerdict> hosts{};
};

// What can be done with the fleet, near or far.  Safe from several threads.
class HostApi {
 public:
  virtual ~HostApi() = default;
  // Enters a host, or brings a known one up to date: what is bound on it and a
  // cordon stay.  An error about the agent has details.reason "agent".
  virtual Result<HostInfo> register_host(const RegisterHostRequest& request) = 0;
  virtual Result<HostPage> list_hosts(std::int64_t limit, const std::string& cursor) = 0;
  virtual Result<HostInfo> get_host(const std::string& id) = 0;
  virtual Result<void> change_host(const std::string& id, HostAction action) = 0;
  // conflict while environments live on it.
  virtual Result<void> remove_host(const std::string& id) = 0;
  // Where `spec` would go and why not elsewhere; nothing is reserved.
  virtual Result<Explanation> explain(const ResourceSpec& spec) = 0;
};

}  // namespace fuse
