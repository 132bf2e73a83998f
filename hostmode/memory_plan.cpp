#include "hostmode/memory_plan.h"

#include <algorithm>
#include <set>

#include "base/text.h"

namespace fuse {

namespace {

// The memory and CPUs of a VM in so many equal parts, what is left over in the first.
std::vector<MemoryShare> even_shares(std::int32_t memory_mb, std::int32_t cpus, std::size_t count) {
  const auto parts = static_cast<std::int32_t>(count);
  std::vector<MemoryShare> shares(count);
  std::int32_t next_cpu = 0;
  for (MemoryShare& share : shares) {
    const bool first = &share == &shares.front();
    share.memory_mb = memory_mb / parts + (first ? memory_mb % parts : 0);
    share.cpus = cpus / parts + (first ? cpus % parts : 0);
    share.first_cpu = next_cpu;
    next_cpu += share.cpus;
  }
  return shares;
}

// Huge pages, where every share fits into those of its node whole.
void use_huge_pages(std::vector<MemoryShare>& shares, const std::vector<const HostNode*>& nodes) {
  for (std::size_t i = 0; i < shares.size(); ++i) {
    const std::int64_t kib = std::int64_t{shares[i].memory_mb} * 1024;
    const bool whole = nodes[i]->page_kib > 0 && kib % nodes[i]->page_kib == 0;
    if (!whole || nodes[i]->free_huge_mb < shares[i].memory_mb) return;
  }
  for (std::size_t i = 0; i < shares.size(); ++i) shares[i].page_kib = nodes[i]->page_kib;
}

std::string too_little(const MemoryShare& share, const HostNode& node) {
  return cat("node ", node.id, " of the devices has ", node.free_mb, " MiB free of the ",
             share.memory_mb, " MiB that should be there");
}

}  // namespace

MemoryPlan plan_memory(std::int32_t memory_mb, std::int32_t cpus,
                       const std::vector<std::optional<std::int32_t>>& devices,
                       const std::vector<HostNode>& nodes) {
  std::set<std::int32_t> wanted;
  for (const auto& node : devices) {
    if (node) wanted.insert(*node);
  }
  MemoryPlan plan;
  std::vector<const HostNode*> chosen;
  for (const HostNode& node : nodes) {
    if (wanted.contains(node.id)) chosen.push_back(&node);
  }
  // On a host with one node there is nothing to choose but the pages.
  if (chosen.empty() && nodes.size() == 1 && !devices.empty()) chosen.push_back(&nodes.front());
  if (chosen.empty()) return plan;
  // A node of the guest's without a CPU is no use to it.
  if (static_cast<std::size_t>(std::max(0, cpus)) < chosen.size()) {
    plan.note = cat("its ", cpus, " CPUs are fewer than the ", chosen.size(),
                    " nodes that its devices are on");
    return plan;
  }
  std::vector<MemoryShare> shares = even_shares(memory_mb, cpus, chosen.size());
  use_huge_pages(shares, chosen);
  for (std::size_t i = 0; i < shares.size(); ++i) {
    if (shares[i].page_kib == 0 && chosen[i]->free_mb < shares[i].memory_mb) {
      plan.note = too_little(shares[i], *chosen[i]);
      return plan;
    }
    if (nodes.size() > 1) shares[i].node = chosen[i]->id;
  }
  const bool plain = nodes.size() == 1 && shares.front().page_kib == 0;
  if (!plain) plan.shares = std::move(shares);
  return plan;
}

namespace {

constexpr std::string_view nodes_dir = "/sys/devices/system/node";

std::int64_t number_in(Host& host, const fs::path& file) {
  const auto text = host.read_file(file);
  return text ? parse_int(trim(*text)).value_or(0) : 0;
}

// The KiB that a line "Node 0 MemFree:  16384 kB" tells; 0 when there is none.
std::int64_t kib_in(std::string_view meminfo, std::string_view key) {
  for (const std::string& line : split(meminfo, '\n')) {
    const std::size_t at = line.find(cat(" ", key, ":"));
    if (at == std::string::npos) continue;
    const std::string_view rest = trim(std::string_view(line).substr(at + key.size() + 2));
    return parse_int(rest.substr(0, rest.find(' '))).value_or(0);
  }
  return 0;
}

// Also what only holds copies of files: the kernel gives it up for a guest.
std::int64_t free_mb_of(std::string_view meminfo) {
  std::int64_t kib = 0;
  for (const std::string_view key : {"MemFree", "Active(file)", "Inactive(file)"}) {
    kib += kib_in(meminfo, key);
  }
  return kib / 1024;
}

// Of the sizes that the node has, the one of which it has most memory free.
void add_huge_pages(Host& host, const fs::path& dir, HostNode& node) {
  const auto sizes = host.list_dir(dir / "hugepages");
  if (!sizes) return;
  constexpr std::string_view prefix = "hugepages-";
  for (const std::string& name : *sizes) {
    if (!name.starts_with(prefix) || !name.ends_with("kB")) continue;
    const auto kib = parse_int(name.substr(prefix.size(), name.size() - prefix.size() - 2));
    if (!kib || *kib <= 0) continue;
    const std::int64_t free = number_in(host, dir / "hugepages" / name / "free_hugepages");
    const std::int64_t mb = free * *kib / 1024;
    if (mb <= node.free_huge_mb) continue;
    node.free_huge_mb = mb;
    node.page_kib = static_cast<std::int32_t>(*kib);
  }
}

}  // namespace

std::vector<HostNode> read_host_nodes(Host& host) {
  std::vector<HostNode> nodes;
  const auto names = host.list_dir(nodes_dir);
  if (!names) return nodes;
  for (const std::string& name : *names) {
    if (!name.starts_with("node")) continue;
    const auto id = parse_int(name.substr(4));
    const fs::path dir = fs::path(nodes_dir) / name;
    const auto meminfo = host.read_file(dir / "meminfo");
    if (!id || !meminfo) continue;
    HostNode node{.id = static_cast<std::int32_t>(*id), .free_mb = free_mb_of(*meminfo)};
    add_huge_pages(host, dir, node);
    nodes.push_back(node);
  }
  std::ranges::sort(nodes, {}, &HostNode::id);
  return nodes;
}

}  // namespace fuse
