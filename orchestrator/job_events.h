#pragma once

#include <string>
#include <vector>

#include "orchestrator/api/types.h"

namespace fuse {

// What has to be told between two looks at a job: a "step" event as each build
// step begins and another as it ends, a "job" event as the job starts, gets from
// build to run, and ends.  Steps that came and went between the looks are told
// too.  Empty when nothing changed but the length of the log.
std::vector<EnvironmentEvent> job_events(const JobStatus& before, const JobStatus& now,
                                         const std::vector<std::string>& step_names);

// The job once nobody can tell any more how it ended.
JobStatus lost(JobStatus job);

}  // namespace fuse
