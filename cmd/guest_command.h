#pragma once

#include <functional>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/result.h"
#include "orchestrator/api/environment_api.h"

namespace fuse::cmd {

// Writes a command's whole input to `send`, which answers false when nobody takes it
// any more.
using GuestInput = std::function<Result<void>(const ByteSink& send)>;

struct GuestCommand {
  std::vector<std::string> argv{};
  GuestInput input{};  // none: it has no input
  ByteSink output{};   // none: what it prints is dropped; false ends it
  std::stop_token stop{};
};

struct GuestCommandEnd {
  int code = 0;
  std::string complaint{};  // the last of what it wrote to stderr
};

// Runs a command in an environment with bytes flowing both ways, whatever their
// number.  The command is killed, and gets no end of input, when its input fails
// (whose error is answered), `output` answers false or `stop` is requested (both
// `unavailable`).
Result<GuestCommandEnd> run_in_guest(EnvironmentApi& api, const std::string& id,
                                     const GuestCommand& command);

}  // namespace fuse::cmd
