#include "hostmode/image_containers.h"

namespace fuse {

std::vector<std::string> container_packages() {
  return {"aardvark-dns", "catatonit", "crun", "iptables", "netavark", "podman", "podman-compose"};
}

// Nothing loads modules in a guest later on, so those that rules of iptables name are
// here as well.
std::vector<WantedModule> container_modules() {
  return {{.name = "overlay"},       {.name = "bridge"},        {.name = "br_netfilter"},
          {.name = "veth"},          {.name = "nf_tables"},     {.name = "nft_compat"},
          {.name = "nft_chain_nat"}, {.name = "xt_MASQUERADE"}, {.name = "xt_addrtype"},
          {.name = "xt_comment"},    {.name = "xt_conntrack"},  {.name = "xt_mark"},
          {.name = "xt_nat"},        {.name = "xt_tcpudp"}};
}

std::vector<std::string> container_hooks() {
  return {// Its package brings the configuration of a network for which there are no plugins.
          R"(rm -f "$1"/etc/cni/net.d/*.conflist)",
          // There is no systemd, and no journal.
          R"(printf '%s\n' '[network]' 'network_backend = "netavark"' '[engine]' )"
          R"('cgroup_manager = "cgroupfs"' 'events_logger = "file"' '[containers]' )"
          R"('log_driver = "k8s-file"' >"$1/etc/containers/containers.conf")",
          // As docker does: names without a registry are Docker Hub's.
          R"(mkdir -p "$1/etc/containers/registries.conf.d" && )"
          R"(printf '%s\n' 'unqualified-search-registries = ["docker.io"]' )"
          R"(>"$1/etc/containers/registries.conf.d/fuse.conf")"};
}

}  // namespace fuse
