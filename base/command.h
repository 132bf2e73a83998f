#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "base/host.h"

namespace fuse {

// What a finished command printed and how it ended.
struct CommandOutput {
  ExitStatus status{};
  std::string out;
  std::string err;
};

struct CommandLimits {
  std::chrono::milliseconds timeout{std::chrono::seconds(30)};
  std::size_t most_output = 16U << 20U;  // bytes of each stream; more is an error
};

// Runs a command to its end with `input` on its stdin.  The streams in `spec`
// are ours here.  On timeout the command is killed and the error says so; a
// non-zero exit is a result, not an error.
Result<CommandOutput> run_command(Host& host, SpawnSpec spec, std::string_view input = {},
                                  const CommandLimits& limits = {});

// The same, but a non-zero exit is an error that quotes the command's stderr.
Result<std::string> require_command(Host& host, SpawnSpec spec, std::string_view input = {},
                                    const CommandLimits& limits = {});

}  // namespace fuse
