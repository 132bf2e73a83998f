#include "net/listener.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <memory>

#include "base/text.h"

namespace fuse {

namespace {

constexpr int backlog = 512;

struct FreeAddresses {
  void operator()(addrinfo* list) const { ::freeaddrinfo(list); }
};

struct NumericAddress {
  std::string ip{};
  std::uint16_t port = 0;
};

NumericAddress numeric(const sockaddr_storage& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address.ss_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, &address, sizeof v4);
    ::inet_ntop(AF_INET, &v4.sin_addr, text.data(), text.size());
    return {text.data(), ntohs(v4.sin_port)};
  }
  if (address.ss_family != AF_INET6) return {};
  sockaddr_in6 v6{};
  std::memcpy(&v6, &address, sizeof v6);
  ::inet_ntop(AF_INET6, &v6.sin6_addr, text.data(), text.size());
  // An IPv4 client of a socket for both shows up mapped into IPv6.
  constexpr std::string_view mapped = "::ffff:";
  std::string ip = text.data();
  if (IN6_IS_ADDR_V4MAPPED(&v6.sin6_addr)) ip.erase(0, mapped.size());
  return {ip, ntohs(v6.sin6_port)};
}

Result<sockaddr_un> unix_address(const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (name.size() >= sizeof address.sun_path) {
    return Error{ErrorCode::invalid_argument, cat("the socket's name is too long: ", name)};
  }
  std::memcpy(address.sun_path, name.c_str(), name.size() + 1);
  return address;
}

Result<Fd> bind_one(const addrinfo& candidate) {
  Fd socket(::socket(candidate.ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!socket.valid()) return errno_error("make a socket", errno);
  const int on = 1;
  const int off = 0;
  ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (candidate.ai_family == AF_INET6) {
    ::setsockopt(socket.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
  }
  if (::bind(socket.get(), candidate.ai_addr, candidate.ai_addrlen) < 0 ||
      ::listen(socket.get(), backlog) < 0) {
    return errno_error("bind", errno);
  }
  return socket;
}

// Removes a socket file that nobody listens on; conflict when somebody does.
Result<void> clear_stale(const fs::path& path, const sockaddr_un& address) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) < 0) {
    if (errno == ENOENT) return {};
    return errno_error(cat("look at ", path.native()), errno);
  }
  if (!S_ISSOCK(found.st_mode)) {
    return Error{ErrorCode::conflict, cat(path.native(), " exists and is not a socket")};
  }
  const Fd probe(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!probe.valid()) return errno_error("make a socket", errno);
  const int answer =
      ::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  if (answer == 0 || errno != ECONNREFUSED) {
    return Error{ErrorCode::conflict, cat(path.native(), " is in use by another process")};
  }
  if (::unlink(path.c_str()) < 0 && errno != ENOENT) {
    return errno_error(cat("remove ", path.native()), errno);
  }
  return {};
}

}  // namespace

Result<SocketName> short_socket_name(const fs::path& path) {
  if (path.native().size() < sizeof(sockaddr_un::sun_path)) return SocketName{{}, path.native()};
  Fd folder(::open(path.parent_path().c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return errno_error(cat("open ", path.parent_path().native()), errno);
  std::string name = cat("/proc/self/fd/", folder.get(), "/", path.filename().native());
  return SocketName{std::move(folder), std::move(name)};
}

Result<Listener> Listener::open(const HttpEndpoint& endpoint) {
  if (const auto* tcp = std::get_if<TcpEndpoint>(&endpoint)) return open_tcp(*tcp);
  return open_unix(std::get<UnixEndpoint>(endpoint));
}

Result<Listener> Listener::open_tcp(const TcpEndpoint& endpoint) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const std::string port = std::to_string(endpoint.port);
  const int failure = ::getaddrinfo(endpoint.host.empty() ? nullptr : endpoint.host.c_str(),
                                    port.c_str(), &hints, &found);
  const std::unique_ptr<addrinfo, FreeAddresses> addresses(found);
  const std::string what = cat("listen on ", endpoint.host, ":", port);
  if (failure != 0) {
    return Error{ErrorCode::invalid_argument, cat(what, ": ", ::gai_strerror(failure))};
  }
  Error last{ErrorCode::invalid_argument, "no address"};
  // IPv6 first where no host is named: it takes IPv4 connections as well.
  for (const int family : {AF_INET6, AF_INET}) {
    for (const addrinfo* one = addresses.get(); one != nullptr; one = one->ai_next) {
      if (one->ai_family != family) continue;
      auto socket = bind_one(*one);
      if (!socket) {
        last = socket.error();
        continue;
      }
      sockaddr_storage bound{};
      socklen_t size = sizeof bound;
      ::getsockname(socket->get(), reinterpret_cast<sockaddr*>(&bound), &size);
      Listener listener;
      listener.socket_ = *std::move(socket);
      listener.port_ = numeric(bound).port;
      const std::string ip = numeric(bound).ip;
      listener.address_ = ip.find(':') == std::string::npos ? cat(ip, ":", listener.port_)
                                                            : cat("[", ip, "]:", listener.port_);
      return listener;
    }
  }
  return in_context(what, last);
}

Result<Listener> Listener::open_unix(const UnixEndpoint& endpoint) {
  const std::string what = cat("listen on ", endpoint.path.native());
  const auto name = short_socket_name(endpoint.path);
  if (!name) return in_context(what, name.error());
  const auto address = unix_address(name->name);
  if (!address) return in_context(what, address.error());
  if (auto cleared = clear_stale(endpoint.path, *address); !cleared) {
    return in_context(what, cleared.error());
  }
  Listener listener;
  listener.socket_ = Fd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!listener.socket_.valid()) return errno_error("make a socket", errno);
  const auto* const raw = reinterpret_cast<const sockaddr*>(&*address);
  if (::bind(listener.fd(), raw, sizeof *address) < 0) return errno_error(what, errno);
  struct stat made {};
  // Before listen(2) nobody can connect, so the wider mode is never of use.
  if (::lstat(endpoint.path.c_str(), &made) < 0 || ::chmod(endpoint.path.c_str(), 0600) < 0 ||
      ::listen(listener.fd(), backlog) < 0) {
    return errno_error(what, errno);
  }
  listener.unix_file_ = UnixFile{endpoint.path, made.st_dev, made.st_ino};
  listener.address_ = endpoint.path.native();
  return listener;
}

Listener::~Listener() {
  if (!socket_.valid() || !unix_file_) return;
  struct stat found {};
  if (::lstat(unix_file_->path.c_str(), &found) < 0) return;
  if (found.st_dev == unix_file_->device && found.st_ino == unix_file_->inode) {
    ::unlink(unix_file_->path.c_str());
  }
}

HttpPeer peer_of(int socket) {
  HttpPeer peer;
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  if (::getpeername(socket, reinterpret_cast<sockaddr*>(&address), &size) < 0) return peer;
  if (address.ss_family == AF_UNIX) {
    ucred credentials{};
    socklen_t length = sizeof credentials;
    if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &length) == 0) {
      peer.uid = credentials.uid;
      peer.pid = credentials.pid;
    }
    return peer;
  }
  const NumericAddress from = numeric(address);
  peer.ip = from.ip;
  peer.port = from.port;
  return peer;
}

}  // namespace fuse
