#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "base/fd.h"
#include "base/result.h"

namespace fuse {

// What a read came to.
struct ReadOutcome {
  enum class Kind { bytes, end, timed_out };
  Kind kind = Kind::timed_out;
  std::size_t size = 0;  // with `bytes`, at least 1
};

// A two-way connection after its handshake.  One thread may read while another
// writes.  Dropping it closes it.
class ByteStream {
 public:
  virtual ~ByteStream() = default;
  // Waits for bytes up to `timeout` (nothing: as long as it takes).  `end` when
  // the other side finished or close() was called; unreachable when the
  // connection broke.
  virtual Result<ReadOutcome> read(std::span<char> into,
                                   std::optional<std::chrono::milliseconds> timeout) = 0;
  // Returns when all of it was handed to the kernel.  No deadline; close() from
  // another thread ends it.
  virtual Result<void> write(std::string_view bytes) = 0;
  // The other side sees the end; reading goes on.  Where the protocol below
  // cannot do it, nothing happens.
  virtual void shutdown_write() = 0;
  // From any thread, any number of times: wakes blocked reads and writes.
  virtual void close() = 0;
  // To poll for more input, valid while the stream lives.  Bytes may already be
  // buffered above it, so read with a timeout of 0 until `timed_out` first.
  [[nodiscard]] virtual int poll_fd() const = 0;
};

// A stream on a connected socket.  `early` is read before what the socket
// holds.
std::unique_ptr<ByteStream> make_socket_stream(Fd socket, std::string early = {});

// Two ends of one connection inside this process.
Result<std::pair<std::unique_ptr<ByteStream>, std::unique_ptr<ByteStream>>> make_stream_pair();

}  // namespace fuse
