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

// Where guests' ports are reached from outside.
struct PortPlan {
  std::string bind = "127.0.0.1";         // the address of this host that they are at
  std::string public_host = "127.0.0.1";  // what callers are told
  // Each VM is at a port of its own above this one; 0: at none.
  std::int32_t vm_port_base = 0;
  std::int32_t guest_port = 9550;  // where that leads to in the guest
};

// A forward that QEMU keeps: from a port of the host into the guest.
struct HostForward {
  std::int32_t host_port = 0;
  std::int32_t guest_port = 0;
  bool operator==(const HostForward&) const = default;
};

// The TCP forwards in what QEMU prints for `info usernet`, in its order.
std::vector<HostForward> parse_usernet(std::string_view text);

// Makes each wanted port of the guest reachable at a port that the kernel picks,
// once however often it is asked for, and says where.
Result<std::vector<Endpoint>> expose_ports(QmpClient& qmp, const PortPlan& ports,
                                           std::span<const ExposeSpec> wanted);
// Makes the guest's own port reachable at the first port above the base that nobody
// has; an endpoint without a name.
Result<Endpoint> publish_guest(QmpClient& qmp, const PortPlan& ports);

// What net.json says: the endpoints in place, for whoever looks at the folder.
std::string net_text(std::span<const Endpoint> endpoints);
Result<std::vector<Endpoint>> parse_net(std::string_view text);

}  // namespace fuse
