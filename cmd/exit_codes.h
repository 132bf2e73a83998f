#pragma once

#include <array>
#include <string_view>

#include "base/error.h"

namespace fuse::cmd {

// What fuse exits with; the table below says what each means.  A command that runs
// something in a guest exits with that program's own code, and then with no other of
// these than `time_limit` and those behind it.
enum ExitCode : int {
  success = 0,
  failed = 1,
  wrong_usage = 2,
  no_placement = 3,
  not_allowed = 4,
  not_reached = 5,
  in_conflict = 7,
  defect = 70,
  time_limit = 124,
  fuse_failed = 125,
  hung_up = 129,
  interrupted = 130,
  output_closed = 141,
  terminated = 143,
};

struct ExitCodeMeaning {
  ExitCode code;
  std::string_view meaning;
};
inline constexpr std::array<ExitCodeMeaning, 14> exit_code_meanings = {{
    {success, "Done."},
    {failed, "What was asked about is bad or failed."},
    {wrong_usage, "Wrong usage of the command line, or an input that cannot be read."},
    {no_placement, "Understood, but nothing can take it."},
    {not_allowed, "Not signed in, or not allowed."},
    {not_reached, "Orchestrator or host cannot be reached."},
    {in_conflict, "It exists already, or is in the wrong state."},
    {defect, "A defect of fuse."},
    {time_limit, "The job's own time limit ended it."},
    {fuse_failed, "fuse failed before the program in the guest had a code."},
    {hung_up, "SIGHUP while following; the job goes on."},
    {interrupted, "SIGINT while following; the job goes on."},
    {output_closed, "Nobody reads the output any more; the job goes on."},
    {terminated, "SIGTERM while following; the job goes on."},
}};

// Whether the command of this name exits with a guest's code, and so with
// `fuse_failed` for all that is fuse's own.
bool exits_with_guest_code(std::string_view command);

// The code that commands of fuse's own exit with after `error`.
ExitCode exit_code_of(const Error& error);

}  // namespace fuse::cmd
