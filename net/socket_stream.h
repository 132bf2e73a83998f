#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/byte_stream.h"
#include "net/transport.h"

namespace fuse {

using Patience = std::optional<std::chrono::milliseconds>;  // nothing: for ever

enum class Readiness { ready, timed_out };
// Waits for an event on a descriptor (poll(2)); errors of the descriptor count as
// ready, for the next read or write to find.
Readiness wait_for(int fd, short events, Patience patience);

// The ByteStream over a transport, with what was read ahead of its reader.
class SocketStream final : public ByteStream {
 public:
  explicit SocketStream(std::unique_ptr<Transport> transport, std::string ahead = {});

  Result<ReadOutcome> read(std::span<char> into, Patience timeout) override;
  Result<void> write(std::string_view bytes) override { return write_within(bytes, std::nullopt); }
  void shutdown_write() override { transport_->shutdown_write(); }
  void close() override;
  [[nodiscard]] int poll_fd() const override { return transport_->fd(); }

  // Input that nobody has read yet, until the next call.
  [[nodiscard]] std::string_view ahead() const {
    return std::string_view(ahead_).substr(ahead_at_);
  }
  // Drops so many bytes from its front.
  void skip(std::size_t size);
  // Waits for input and appends it to ahead().
  Result<ReadOutcome> fill(Patience timeout);
  // Fails with unavailable when no byte moves for `stall`.
  Result<void> write_within(std::string_view bytes, Patience stall);
  // Says goodbye: sends the end, then reads and drops what the other side still
  // sends until it closes or `most` has passed.  Closing with unread input would
  // make the kernel reset the connection and take our last bytes with it.
  void linger(std::chrono::milliseconds most);

 private:
  Result<ReadOutcome> read_socket(std::span<char> into, Patience timeout);

  std::unique_ptr<Transport> transport_;
  std::string ahead_;
  std::size_t ahead_at_ = 0;  // what lies before it has been read
  std::atomic<bool> closed_ = false;
};

}  // namespace fuse
