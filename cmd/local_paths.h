#pragma once

#include "base/host.h"

namespace fuse::cmd {

// The names in local mode's state folder; nobody else spells them.
struct LocalPaths {
  fs::path dir{};

  [[nodiscard]] fs::path lock() const { return dir / "lock"; }
  [[nodiscard]] fs::path database() const { return dir / "fuse.db"; }
  [[nodiscard]] fs::path key() const { return dir / "key"; }
  [[nodiscard]] fs::path agent_state() const { return dir / "agent-state"; }
  [[nodiscard]] fs::path log() const { return dir / "daemon.log"; }
  [[nodiscard]] fs::path old_log() const { return dir / "daemon.log.1"; }
  [[nodiscard]] fs::path socket() const { return dir / "control.sock"; }
};

}  // namespace fuse::cmd
