#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/host.h"
#include "base/result.h"

namespace fuse::cmd {

// The value of an environment variable; nothing when it is not set.
using Variables = std::function<std::optional<std::string>(const std::string& name)>;

// Those of this process.
Variables process_variables();

// What the environment says about how fuse runs on this machine.
struct Config {
  fs::path state_dir{};   // FUSE_STATE, or fuse/ in XDG_STATE_HOME or ~/.local/state
  fs::path images_dir{};  // FUSE_IMAGES, or images/ in the state folder
  std::string accel{};    // FUSE_ACCEL: "tcg" or "kvm"; empty: the best that works
};

// invalid_argument when there is no place for the state.
Result<Config> read_config(const Variables& variables);

// Whether the variables forbid colours: NO_COLOR, or TERM is "dumb" or not set.
bool forbids_colour(const Variables& variables);

// The variables, as "K=V", that a background process of ours gets.  Nothing
// else of the user's environment stays in a process that lives for days.
std::vector<std::string> background_environment(const Variables& variables);

}  // namespace fuse::cmd
