#include <arpa/inet.h>
#include <net/if.h>
#include <net/route.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include "base/fd.h"
#include "base/posix_host.h"
#include "base/text.h"
#include "guest/init_system.h"

namespace fuse {

namespace {

constexpr int looks_for_card = 250;
constexpr std::chrono::milliseconds look_again(20);

sockaddr_in ipv4(const std::string& text) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  ::inet_pton(AF_INET, text.c_str(), &address.sin_addr);
  return address;
}

template <class Where>
void put(const sockaddr_in& address, Where& into) {
  static_assert(sizeof into >= sizeof address);
  std::memcpy(&into, &address, sizeof address);
}

ifreq request_for(const std::string& card) {
  ifreq request{};
  std::memcpy(request.ifr_name, card.data(), std::min<std::size_t>(card.size(), IFNAMSIZ - 1));
  return request;
}

Result<void> bring_up(const Fd& socket, const std::string& card) {
  ifreq request = request_for(card);
  if (::ioctl(socket.get(), SIOCGIFFLAGS, &request) < 0) {
    return errno_error(cat("read the state of ", card), errno);
  }
  request.ifr_flags = static_cast<short>(request.ifr_flags | IFF_UP);
  if (::ioctl(socket.get(), SIOCSIFFLAGS, &request) < 0) {
    return errno_error(cat("bring up ", card), errno);
  }
  return {};
}

Result<void> set_address(const Fd& socket, const std::string& card, const NetworkOptions& network) {
  ifreq request = request_for(card);
  put(ipv4(network.address), request.ifr_addr);
  if (::ioctl(socket.get(), SIOCSIFADDR, &request) < 0) {
    return errno_error(cat("give ", card, " its address"), errno);
  }
  sockaddr_in mask = ipv4("0.0.0.0");
  mask.sin_addr.s_addr = htonl(~std::uint32_t{0} << (32 - network.prefix));
  request = request_for(card);
  put(mask, request.ifr_netmask);
  if (::ioctl(socket.get(), SIOCSIFNETMASK, &request) < 0) {
    return errno_error(cat("give ", card, " its network mask"), errno);
  }
  return {};
}

Result<void> set_gateway(const Fd& socket, const std::string& gateway) {
  rtentry route{};
  put(ipv4("0.0.0.0"), route.rt_dst);
  put(ipv4("0.0.0.0"), route.rt_genmask);
  put(ipv4(gateway), route.rt_gateway);
  route.rt_flags = RTF_UP | RTF_GATEWAY;
  if (::ioctl(socket.get(), SIOCADDRT, &route) < 0 && errno != EEXIST) {
    return errno_error(cat("route by ", gateway), errno);
  }
  return {};
}

// A driver may take a moment after its module was loaded.
Result<std::string> first_card() {
  for (int look = 0; look < looks_for_card; ++look) {
    const auto cards = PosixHost().list_dir("/sys/class/net");
    if (!cards) return cards.error();
    for (const std::string& card : *cards) {
      std::error_code failure;
      if (fs::exists(fs::path("/sys/class/net") / card / "device", failure)) return card;
    }
    std::this_thread::sleep_for(look_again);
  }
  return Error{ErrorCode::not_found, "there is no network card"};
}

}  // namespace

Result<void> configure_network(const std::optional<NetworkOptions>& network) {
  const Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!socket.valid()) return errno_error("open a socket", errno);
  if (auto up = bring_up(socket, "lo"); !up || !network) return up;
  const auto card = first_card();
  if (!card) return card.error();
  if (auto set = set_address(socket, *card, *network); !set) return set;
  if (auto up = bring_up(socket, *card); !up) return up;
  return network->gateway.empty() ? Result<void>() : set_gateway(socket, network->gateway);
}

}  // namespace fuse
