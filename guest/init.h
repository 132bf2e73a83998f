#pragma once

#include <optional>
#include <span>
#include <string>

namespace fuse {

// Plays the guest's part when these are the arguments of one; else nothing, and the
// program is not inside a guest.
//
// As /init of a guest's initramfs (argv[0] is called init, process 1): mounts, kernel
// modules, network, the guest's disk; then the agent in a process beside it, and
// either the disk's own init in its place or, for good, a loop that keeps the agent
// running.  When something fails that a guest cannot do without, one line `fuse init:
// ...` goes to the console and the power off: it does not return.
//
// As the agent that an init of another's making starts (argv[0] is called
// guest_program_name): its exit code, when it cannot go on.
std::optional<int> run_guest_part(std::span<const std::string> arguments);

}  // namespace fuse
