#pragma once

#include <memory>

#include "guest/channel/messages.h"
#include "guest/server_link.h"

namespace fuse {

// Receives a file: into a temporary one beside it, which takes its place once the
// last byte has come.  Missing parents are made.  The path is normalised first;
// under /fuse folders are 0700 and files 0600 by default.  `root` is laid before
// the path.
std::unique_ptr<StreamHandler> start_upload(ServerStream& stream, const UploadOperation& upload,
                                            const fs::path& root);

}  // namespace fuse
