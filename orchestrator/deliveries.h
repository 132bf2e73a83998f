#pragma once

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "orchestrator/api/host_agent.h"
#include "orchestrator/manifest.h"

namespace fuse {

// Everything that is written into a guest before anything is started in it: our
// own files under /fuse, `credentials` among them, and the request's; where both name
// one, ours is taken.
Result<std::vector<UploadFile>> guest_files(const CreateEnvironmentRequest& request,
                                            const Manifest& manifest,
                                            const std::vector<UploadFile>& credentials = {});

// The job that the request's phases stand for.  `left` is what remains of its
// max_runtime; 0: no limit.
JobSpec job_of(const CreateEnvironmentRequest& request, const Manifest& manifest,
               std::chrono::seconds left);

// `text` with every secret value of eight bytes or more replaced by
// "[REDACTED]", the longest first.
std::string redacted(std::string text, const std::map<std::string, std::string>& secrets);

}  // namespace fuse
