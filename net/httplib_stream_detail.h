#pragma once

#include <httplib.h>
#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include "net/headers.h"
#include "net/socket_stream.h"

namespace fuse {

// A connection as cpp-httplib sees it.  Heads are taken from the connection as a
// whole, within a limit and a time; bodies as they come.  What httplib writes is
// held back until it reads again or flush() is called, so that a head and a short
// body go out together.
class HttplibStream final : public httplib::Stream {
 public:
  HttplibStream(SocketStream& socket, std::chrono::milliseconds stall)
      : socket_(socket), stall_(stall) {}

  enum class Input { ready, end, broken, timed_out, too_large };
  // Waits for a whole head of at most `most` bytes for httplib to read next.
  Input take_head(std::size_t most);
  // Instead of one from the connection.
  void set_head(std::string head);
  // Leaves the waiting to httplib's first read: for an answer, whose head comes
  // after httplib has written.
  void expect_head(std::size_t most) { expected_ = most; }

  // Until when what is read has to be there; none for max().  No read waits for
  // longer than the stall time either.
  void set_deadline(std::chrono::steady_clock::time_point deadline) { deadline_ = deadline; }
  // What the last read came to.
  [[nodiscard]] Input last_read() const { return last_read_; }

  // False once the other side takes nothing any more.
  bool flush();
  // Forgets what was held back and whatever httplib writes from now on.
  void mute();

  [[nodiscard]] bool is_readable() const override { return true; }
  [[nodiscard]] bool is_writable() const override { return true; }
  ssize_t read(char* into, std::size_t size) override;
  ssize_t write(const char* bytes, std::size_t size) override;
  void get_remote_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  void get_local_ip_and_port(std::string& /*ip*/, int& /*port*/) const override {}
  [[nodiscard]] socket_t socket() const override { return socket_.poll_fd(); }

 private:
  [[nodiscard]] std::chrono::milliseconds patience() const;
  Input fill();

  SocketStream& socket_;
  std::chrono::milliseconds stall_;
  std::chrono::steady_clock::time_point deadline_ = std::chrono::steady_clock::time_point::max();
  std::string head_{};
  std::size_t head_at_ = 0;  // what lies before it has been read
  std::optional<std::size_t> expected_{};
  Input last_read_ = Input::ready;
  std::string unsent_{};
  bool muted_ = false;
};

// httplib's fields as ours: those of one name in the order they came in.
HttpHeaders fields_of(const httplib::Headers& headers);

}  // namespace fuse
