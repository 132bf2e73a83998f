#pragma once

#include <chrono>
#include <cstddef>
#include <string>

#include "base/result.h"
#include "net/headers.h"
#include "net/http_client.h"
#include "net/socket_stream.h"

namespace fuse {

struct UpgradeCall {
  std::string method{};
  std::string target{};  // encoded path and query
  HttpHeaders headers{};
  std::size_t most_body = 0;  // of a refusal; what is longer is cut
  std::chrono::milliseconds timeout{};
};

// Asks for an upgrade on a fresh connection, by cpp-httplib: the 101, behind whose
// head nothing is read, or the refusal with its body.  unreachable with the reason
// alone when no answer came.
Result<HttpReply> ask_for_upgrade(SocketStream& connection, const UpgradeCall& call);

}  // namespace fuse
