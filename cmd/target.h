#pragma once

#include <memory>
#include <optional>
#include <string>

#include "cmd/context.h"
#include "net/http_client.h"
#include "remote/remote_fleet.h"

namespace fuse::cmd {

// The orchestrator elsewhere that commands talk to.
struct Target {
  std::string name{};  // of its context; empty: FUSE_URL's
  std::string url{};
  std::string token{};
  bool master = false;
  std::string active_host{};
};

// FUSE_URL with FUSE_TOKEN, else the context of --context, else the current one;
// nothing in local mode.
Result<std::optional<Target>> find_target(const Context& context);

Result<std::unique_ptr<HttpClient>> dial_target(const Target& target, const Variables& variables);

// The fleet of the orchestrator that commands talk to: of a target, else of the one
// of this machine, which is started when it does not run.
Result<std::unique_ptr<RemoteFleet>> connect_fleet(Context& context);

}  // namespace fuse::cmd
