#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/clock.h"
#include "base/host.h"
#include "base/result.h"
#include "orchestrator/api/host_agent.h"
#include "orchestrator/api/types.h"

// What host and guest say to each other.  A stream is opened with one operation,
// written as JSON; its bulk (a file's bytes, a job's spec, input) follows as data;
// it is closed with the operation's result or ended with an error.
namespace fuse {

inline constexpr std::int32_t guest_protocol = 1;

// A job as its guest knows it.
struct GuestJob {
  std::string key{};      // what start_job was given
  std::string boot_id{};  // of the guest's boot in which it ran
  JobStatus status{};
};

// What the agent in the guest says of itself when a connection begins.
struct GuestHello {
  std::int32_t protocol = 0;
  std::string version{};
  std::string build{};
  std::string boot_id{};
  std::string hostname{};
  std::chrono::milliseconds uptime{};
  std::optional<GuestJob> job{};
};

// A command to run in the guest, without a shell unless argv names one.
struct GuestExec {
  std::vector<std::string> argv{};
  std::map<std::string, std::string> env{};  // over the guest's defaults
  std::string workdir{};                     // empty: /
  std::string input{};                       // its stdin
  std::chrono::milliseconds timeout{};       // 0: none
  std::size_t most_output = 16U << 20U;      // bytes of each stream that are kept
};

struct GuestExecResult {
  ExitStatus status{};
  bool timed_out = false;
  bool truncated = false;  // there was more output than was to be kept
  std::string out{};
  std::string err{};
};

}  // namespace fuse
