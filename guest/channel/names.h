#pragma once

#include <string_view>

namespace fuse {

// The name by which the guest's agent finds its port.
inline constexpr std::string_view guest_port_name = "fuse.agent";

// What the executable is called where a guest's own init starts it as the agent.
inline constexpr std::string_view guest_program_name = "fuse-guest";

}  // namespace fuse
