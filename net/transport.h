#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/fd.h"

namespace fuse {

// What one try of a non-blocking read or write came to.
struct IoTry {
  enum class Kind { moved, wait_readable, wait_writable, end, broken };
  Kind kind = Kind::broken;
  std::size_t size = 0;  // with `moved`, at least 1
  std::string why{};     // with `broken`
};

// What moves the bytes of one connection without ever blocking: a plain socket,
// TLS over one, or libcurl's.  One thread may read while another writes.
class Transport {
 public:
  virtual ~Transport() = default;
  virtual IoTry read(std::span<char> into) = 0;
  virtual IoTry write(std::string_view bytes) = 0;
  virtual void shutdown_write() = 0;
  // To poll on, and to shut down from another thread.
  [[nodiscard]] virtual int fd() const = 0;
};

// Makes the socket non-blocking.
std::unique_ptr<Transport> make_plain_transport(Fd socket);

}  // namespace fuse
