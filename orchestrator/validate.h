#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "base/result.h"
#include "orchestrator/api/environment_api.h"

namespace fuse {

// What a request is held against besides itself.
struct ValidationFacts {
  std::function<Result<void>(const std::string& host_id)> host_exists{};
  std::chrono::seconds most_startup{55};
};

// Checks a create in the wire's order; the first thing that is wrong is the
// error.
Result<void> validate(const CreateEnvironmentRequest& request, const ValidationFacts& facts);

// Checks an exec, and gives it with its timeout within the limits and `shell`
// turned into a command.
Result<ExecRequest> checked_exec(const ExecRequest& request);

// The request with what was left out filled in: what is reserved and sent.
CreateEnvironmentRequest with_defaults(CreateEnvironmentRequest request);

}  // namespace fuse
