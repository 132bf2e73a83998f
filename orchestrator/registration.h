#pragma once

#include <string>
#include <vector>

#include "orchestrator/api/host_api.h"

// What becomes of an operator's words about a host and its agent's.  Pure.
namespace fuse {

// The request with its names as they are compared, its address without a trailing
// slash; invalid_argument with the wire's texts.
Result<RegisterHostRequest> checked_registration(RegisterHostRequest request);

// What a host has: what was declared, else what its agent found.  Devices and
// instances are the agent's alone, vm_count the operator's.
HostCapacity merged_capacity(const HostCapacity& declared, const HostCapacity& probed);

struct Registration {
  HostCapacity capacity{};
  std::vector<std::string> warnings{};
};

// `probed` is what the agent said when it was asked, or why it said nothing.  An
// error about the agent has details.reason "agent".
Result<Registration> register_with(const RegisterHostRequest& request,
                                   const Result<HostCapacity>& probed);

}  // namespace fuse
