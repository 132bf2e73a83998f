#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/host.h"
#include "cmd/config.h"

namespace fuse::cmd {

// An orchestrator that the user has connected to.
struct NamedContext {
  std::string name{};
  std::string base_url{};
  std::string token{};
  bool master = false;        // whether the token is the master token
  std::string active_host{};  // that commands are limited to; empty: none
};

// The file of contexts: `current_context: NAME` and `contexts:`, a list of {name,
// base_url, token, master, active_host}; unknown keys are ignored.
struct Contexts {
  std::string current{};
  std::vector<NamedContext> all{};

  [[nodiscard]] const NamedContext* find(const std::string& name) const;
  [[nodiscard]] NamedContext* find(const std::string& name);
};

// fuse/config.yaml in XDG_CONFIG_HOME or ~/.config.
Result<fs::path> contexts_file(const Variables& variables);

Result<Contexts> parse_contexts(const std::string& text, const std::string& file);
std::string print_contexts(const Contexts& contexts);

// A missing file holds none.
Result<Contexts> read_contexts(Host& host, const fs::path& file);
// The file is 0600, its folder 0700.
Result<void> write_contexts(Host& host, const fs::path& file, const Contexts& contexts);

}  // namespace fuse::cmd
