#pragma once

#include <memory>

#include "net/byte_stream.h"
#include "net/http.h"
#include "net/url.h"
#include "orchestrator/api/streams.h"

namespace fuse {

// Frames over a connection: what a client holds after the 101.  read() ends the
// session when the other side closed it, also in the middle of a frame.
std::unique_ptr<AttachSession> make_attach_session(std::unique_ptr<ByteStream> connection);

// The server's side: carries frames between a client's connection and a session
// until the session is over (its exit frame is passed on) or the client is
// gone; the session is closed when this returns.
void serve_attach(ByteStream& client, AttachSession& session);

// The 101 after which the session is served on the connection.
HttpResponse attach_response(std::unique_ptr<AttachSession> session);

// The query of an attach request and back: tty, rows, cols, cmd.  rows and cols
// outside 1..65535 count as not given.
Query attach_query(const AttachRequest& request);
AttachRequest parse_attach_query(const Query& query);

}  // namespace fuse
