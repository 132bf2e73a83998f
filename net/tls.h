#pragma once

#include <memory>

#include "base/fd.h"
#include "base/result.h"
#include "net/http_server.h"
#include "net/transport.h"

namespace fuse {

// A server's certificate and key, read once (TLS 1.2 and 1.3).
class TlsServer {
 public:
  static Result<std::unique_ptr<TlsServer>> load(const TlsFiles& files);
  virtual ~TlsServer() = default;
  // The server's side of TLS on a connection.  The handshake is part of the first
  // read or write.
  virtual std::unique_ptr<Transport> accept(Fd socket) = 0;
};

}  // namespace fuse
