#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>

#include "base/fd.h"
#include "base/host.h"
#include "net/http.h"
#include "net/http_server.h"

namespace fuse {

// A name for a unix socket that fits into a socket address (107 bytes): the path
// itself, or one through /proc/self/fd and the folder held open here.
struct SocketName {
  Fd folder{};
  std::string name{};
};
Result<SocketName> short_socket_name(const fs::path& path);

// A listening socket.  Dropping it removes the file of a unix socket if it still
// is the one made here.
class Listener {
 public:
  static Result<Listener> open(const HttpEndpoint& endpoint);
  Listener(Listener&&) = default;
  Listener& operator=(Listener&&) = delete;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;
  ~Listener();

  [[nodiscard]] int fd() const { return socket_.get(); }
  [[nodiscard]] std::uint16_t port() const { return port_; }
  // "127.0.0.1:8080", "[::]:8080" or the path.
  [[nodiscard]] const std::string& address() const { return address_; }
  [[nodiscard]] bool is_unix() const { return unix_file_.has_value(); }

 private:
  struct UnixFile {
    fs::path path{};
    dev_t device = 0;
    ino_t inode = 0;
  };

  Listener() = default;
  static Result<Listener> open_tcp(const TcpEndpoint& endpoint);
  static Result<Listener> open_unix(const UnixEndpoint& endpoint);

  Fd socket_{};
  std::string address_{};
  std::uint16_t port_ = 0;
  std::optional<UnixFile> unix_file_{};
};

// Who is at the other end of an accepted connection.
HttpPeer peer_of(int socket);

}  // namespace fuse
