#pragma once

#include <string>
#include <vector>

namespace fuse::cmd {

// The program as a whole, with the real terminal, files and clock: as the first
// process of a guest its agent, else the command line.  `arguments` begin with
// the program's name.  Returns the exit code.
int run_program(const std::vector<std::string>& arguments);

}  // namespace fuse::cmd
