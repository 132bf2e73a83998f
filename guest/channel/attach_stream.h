#pragma once

#include <memory>

#include "guest/channel/host_link.h"
#include "orchestrator/api/streams.h"

namespace fuse {

// The session that a stream of an attach operation carries.  Private to this
// folder.
std::unique_ptr<AttachSession> make_attach_session(HostStream stream);

}  // namespace fuse
