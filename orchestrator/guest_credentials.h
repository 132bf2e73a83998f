#pragma once

#include <string>
#include <vector>

#include "base/clock.h"
#include "orchestrator/api/host_agent.h"

namespace fuse {

// What a guest's own server is known by, new each time: a certificate for a week, its
// key, and a token of 64 hex digits, as the files /fuse/tls/cert.pem, /fuse/tls/key.pem
// and /fuse/auth-token.
Result<std::vector<UploadFile>> make_guest_credentials(const std::string& vm_name, WallTime now);

}  // namespace fuse
