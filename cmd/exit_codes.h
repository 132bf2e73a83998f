#pragma once

#include "base/error.h"

namespace fuse::cmd {

// What fuse's exit codes mean.  A command that runs something in a guest exits
// with that program's own code, and then with no other of these than
// `time_limit` and `fuse_failed`.
enum ExitCode : int {
  success = 0,
  failed = 1,           // what was asked about is bad or failed
  wrong_usage = 2,      // of the command line; or an input that cannot be read
  no_placement = 3,     // understood, but nothing can take it
  not_allowed = 4,      // not signed in, or not allowed
  not_reached = 5,      // orchestrator or host
  in_conflict = 7,      // it exists, or is in the wrong state
  defect = 70,          // in fuse itself
  time_limit = 124,     // the job's own limit ended it
  fuse_failed = 125,    // fuse failed before the program in the guest had a code
  hung_up = 129,        // SIGHUP while following
  interrupted = 130,    // SIGINT while following
  output_closed = 141,  // nobody reads the output any more
  terminated = 143,     // SIGTERM while following
};

// The code that commands of fuse's own exit with after `error`.
ExitCode exit_code_of(const Error& error);

}  // namespace fuse::cmd
