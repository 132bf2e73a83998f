#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/host.h"
#include "base/result.h"
#include "hostmode/qmp_client.h"
#include "orchestrator/api/types.h"

namespace fuse {

// A forward that QEMU keeps: from a port of the host's loopback into the guest.
struct HostForward {
  std::int32_t host_port = 0;
  std::int32_t guest_port = 0;
  bool operator==(const HostForward&) const = default;
};

// The TCP forwards in what QEMU prints for `info usernet`, in its order.
std::vector<HostForward> parse_usernet(std::string_view text);

// Makes each wanted port of the guest reachable on 127.0.0.1 at a port that the
// kernel picks, once however often it is asked for, and says where.
Result<std::vector<Endpoint>> expose_ports(QmpClient& qmp, std::span<const ExposeSpec> wanted);

// What net.json says: the endpoints in place, for whoever looks at the folder.
std::string net_text(std::span<const Endpoint> endpoints);
Result<std::vector<Endpoint>> parse_net(std::string_view text);

}  // namespace fuse
