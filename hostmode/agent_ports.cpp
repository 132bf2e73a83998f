#include <utility>

#include "hostmode/agent.h"
#include "hostmode/public_host.h"
#include "hostmode/qmp_client.h"
#include "hostmode/user_net.h"

namespace fuse {

Result<void> Agent::note_endpoints(const std::string& uid, const std::vector<Endpoint>& in_place) {
  return keeper_.world().host.replace_file(keeper_.paths().vm(uid, vm_file::net),
                                           net_text(in_place), 0600);
}

std::vector<Endpoint> Agent::endpoints(const std::string& uid) {
  const auto text = keeper_.world().host.read_file(keeper_.paths().vm(uid, vm_file::net));
  if (!text) return {};
  auto known = parse_net(*text);
  return known ? *std::move(known) : std::vector<Endpoint>();
}

// The one without a name.
std::optional<Endpoint> Agent::own_endpoint(const std::string& uid) {
  const std::int32_t port = keeper_.config().ports.guest_port;
  for (const Endpoint& endpoint : endpoints(uid)) {
    if (endpoint.as.empty() && endpoint.port == port) return endpoint;
  }
  return std::nullopt;
}

VmInfo Agent::with_address(VmInfo vm) {
  const PortPlan& ports = keeper_.config().ports;
  if (ports.vm_port_base == 0) return vm;
  // The host's name may have changed since the port was taken.
  if (const auto own = own_endpoint(vm.uid)) {
    vm.url = authority_of(ports.public_host, own->host_port);
  }
  return vm;
}

Result<void> Agent::publish(const VmInfo& vm) {
  const PortPlan& ports = keeper_.config().ports;
  const auto found = keeper_.find(vm.uid);
  if (!found) return found.error();
  const bool has_network = (*found)->record().net == NetMode::user;
  if (ports.vm_port_base == 0 || !has_network || own_endpoint(vm.uid)) return {};
  auto qmp = QmpClient::connect(keeper_.paths().vm(vm.uid), {});
  if (!qmp) return qmp.error();
  const auto own = publish_guest(*qmp, ports);
  if (!own) return own.error();
  std::vector<Endpoint> in_place = endpoints(vm.uid);
  in_place.push_back(*own);
  return note_endpoints(vm.uid, in_place);
}

}  // namespace fuse
