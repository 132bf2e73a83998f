#include <algorithm>

#include "hostmode/agent.h"
#include "hostmode/public_host.h"
#include "hostmode/qmp_client.h"
#include "hostmode/user_net.h"

namespace fuse {

Result<void> Agent::note_endpoints(const std::string& uid, const std::vector<Endpoint>& in_place) {
  return keeper_.world().host.replace_file(keeper_.paths().vm(uid, vm_file::net),
                                           net_text(in_place), 0600);
}

// The one without a name in net.json.
std::optional<Endpoint> Agent::own_endpoint(const std::string& uid) {
  const auto text = keeper_.world().host.read_file(keeper_.paths().vm(uid, vm_file::net));
  if (!text) return std::nullopt;
  const auto endpoints = parse_net(*text);
  if (!endpoints) return std::nullopt;
  const auto found = std::ranges::find(*endpoints, std::string(), &Endpoint::as);
  if (found == endpoints->end()) return std::nullopt;
  return *found;
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
  return note_endpoints(vm.uid, {*own});
}

}  // namespace fuse
