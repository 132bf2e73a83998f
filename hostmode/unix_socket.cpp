#include "hostmode/unix_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <string>

#include "base/text.h"

namespace fuse {

Result<Fd> connect_unix(const fs::path& dir, std::string_view name) {
  const Fd folder(::open(dir.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return errno_error(cat("open folder ", dir.native()), errno);
  const std::string path = cat("/proc/self/fd/", folder.get(), "/", name);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof(address.sun_path)) {
    return Error{ErrorCode::invalid_argument, cat("socket name \"", name, "\" is too long")};
  }
  std::ranges::copy(path, std::begin(address.sun_path));

  Fd fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
  if (!fd.valid()) return errno_error("make a socket", errno);
  const auto* generic = reinterpret_cast<const sockaddr*>(&address);
  while (::connect(fd.get(), generic, sizeof(address)) < 0) {
    if (errno != EINTR) return errno_error(cat("connect to ", (dir / name).native()), errno);
  }
  return fd;
}

}  // namespace fuse
