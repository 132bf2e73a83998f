#pragma once

#include <memory>

#include "guest/channel/messages.h"
#include "guest/job.h"
#include "guest/server_link.h"

namespace fuse {

// Sends a job's log from an offset on, as there is credit, and takes
// acknowledgements.  A reader that is overtaken by what another acknowledges ends
// with `conflict`.
std::unique_ptr<StreamHandler> start_job_log(Job& job, ServerStream& stream,
                                             const GuestLogQuery& query);

}  // namespace fuse
