#pragma once

#include <string>
#include <string_view>

#include "orchestrator/api/types.h"

namespace fuse::cmd {

// How a job that has ended came to its end, in words: "exit 3 after 12 s",
// "build step 2 of 3 (pip install) failed: exit 1".  `why` tells of a lost one
// what became of its VM.
std::string end_text(const JobStatus& job, const std::string& why = {});

// What to do about an environment that failed for this reason.
std::string failure_hint(const Environment& environment, std::string_view reason);

// What a job is at, in a few words for a table: "running", "build 2/3", "exit 0".
std::string short_text(const JobStatus& job);

// The code that commands which exit with a guest's code have for it: the job's
// own, 124 when its time limit ended it, 125 when it has none.
int exit_code_of(const JobStatus& job);

}  // namespace fuse::cmd
