#include "hostmode/public_host.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <memory>
#include <optional>

#include "base/fd.h"
#include "base/text.h"

namespace fuse {

namespace {

bool is_label(std::string_view label) {
  constexpr std::size_t longest = 63;
  const auto plain = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-';
  };
  return !label.empty() && label.size() <= longest && label.front() != '-' && label.back() != '-' &&
         std::ranges::all_of(label, plain);
}

bool is_address(int family, const std::string& text) {
  std::array<unsigned char, sizeof(in6_addr)> bytes{};
  return ::inet_pton(family, text.c_str(), bytes.data()) == 1;
}

// An address as text; nothing for one that no other host can use.
std::optional<std::string> text_of(const sockaddr* address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (address->sa_family == AF_INET) {
    const in_addr& v4 = reinterpret_cast<const sockaddr_in*>(address)->sin_addr;
    const std::uint32_t number = ntohl(v4.s_addr);
    const bool link_local = (number >> 16U) == 0xA9FEU;
    if (number == INADDR_ANY || (number >> 24U) == IN_LOOPBACKNET || link_local) return {};
    return ::inet_ntop(AF_INET, &v4, text.data(), text.size());
  }
  if (address->sa_family != AF_INET6) return std::nullopt;
  const in6_addr& v6 = reinterpret_cast<const sockaddr_in6*>(address)->sin6_addr;
  if (IN6_IS_ADDR_LOOPBACK(&v6) || IN6_IS_ADDR_LINKLOCAL(&v6) || IN6_IS_ADDR_UNSPECIFIED(&v6)) {
    return std::nullopt;
  }
  return ::inet_ntop(AF_INET6, &v6, text.data(), text.size());
}

// The source of packets to an address that is nobody's: connecting a datagram
// socket chooses it and sends nothing.
std::optional<std::string> source_towards(const sockaddr* somewhere, socklen_t size) {
  const Fd socket(::socket(somewhere->sa_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid() || ::connect(socket.get(), somewhere, size) != 0) return std::nullopt;
  sockaddr_storage ours{};
  socklen_t length = sizeof ours;
  if (::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&ours), &length) != 0) {
    return std::nullopt;
  }
  return text_of(reinterpret_cast<const sockaddr*>(&ours));
}

std::optional<std::string> default_source(int family) {
  constexpr std::uint16_t discard = 9;
  if (family == AF_INET) {
    sockaddr_in v4{};
    v4.sin_family = AF_INET;
    v4.sin_port = htons(discard);
    ::inet_pton(AF_INET, "192.0.2.1", &v4.sin_addr);  // RFC 5737
    return source_towards(reinterpret_cast<const sockaddr*>(&v4), sizeof v4);
  }
  sockaddr_in6 v6{};
  v6.sin6_family = AF_INET6;
  v6.sin6_port = htons(discard);
  ::inet_pton(AF_INET6, "2001:db8::1", &v6.sin6_addr);  // RFC 3849
  return source_towards(reinterpret_cast<const sockaddr*>(&v6), sizeof v6);
}

std::optional<std::string> any_interface(int family) {
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return std::nullopt;
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> owned(list, &::freeifaddrs);
  for (const ifaddrs* at = list; at != nullptr; at = at->ifa_next) {
    const bool up = (at->ifa_flags & static_cast<unsigned>(IFF_UP)) != 0;
    if (!up || at->ifa_addr == nullptr || at->ifa_addr->sa_family != family) continue;
    if (auto text = text_of(at->ifa_addr)) return text;
  }
  return std::nullopt;
}

}  // namespace

bool is_public_host(std::string_view text) {
  constexpr std::size_t longest = 253;
  const std::string host(text);
  if (is_address(AF_INET, host) || is_address(AF_INET6, host)) return true;
  if (host.empty() || host.size() > longest) return false;
  const auto labels = split(host, '.');
  // All digits and dots would be an address, and it is none.
  const bool numeric = host.find_first_not_of("0123456789.") == std::string::npos;
  return !numeric && std::ranges::all_of(labels, is_label);
}

Result<std::string> probe_public_host() {
  for (const int family : {AF_INET, AF_INET6}) {
    if (auto source = default_source(family)) return *std::move(source);
  }
  for (const int family : {AF_INET, AF_INET6}) {
    if (auto address = any_interface(family)) return *std::move(address);
  }
  return Error{ErrorCode::unavailable,
               "this host has no address but loopback: set PUBLIC_HOST to the IP or DNS name at "
               "which its VMs are reached"};
}

std::string authority_of(std::string_view host, std::int32_t port) {
  if (host.find(':') != std::string_view::npos) return cat("[", host, "]:", port);
  return cat(host, ":", port);
}

}  // namespace fuse
