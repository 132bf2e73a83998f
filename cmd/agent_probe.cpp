#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "base/units.h"
#include "cmd/agent_options.h"
#include "cmd/commands.h"
#include "cmd/misuse.h"
#include "cmd/output.h"
#include "hostmode/devices/inventory.h"

namespace fuse::cmd {

namespace {

using Json = nlohmann::ordered_json;

std::string_view words_of(MemberKind kind) {
  switch (kind) {
    case MemberKind::gpu:
      return "gpu";
    case MemberKind::companion:
      return "companion";
    case MemberKind::bridge:
      return "bridge";
    case MemberKind::foreign:
      break;
  }
  return "foreign";
}

Json bars_json(const std::vector<PciBar>& bars) {
  Json out = Json::array();
  for (const PciBar& bar : bars) {
    out.push_back({{"index", bar.index},
                   {"size", bar.size},
                   {"memory", bar.memory},
                   {"prefetchable", bar.prefetchable},
                   {"assigned", bar.assigned}});
  }
  return out;
}

Json members_json(const GpuGroupScan& group) {
  Json out = Json::array();
  for (const GroupMember& member : group.members) {
    out.push_back({{"address", member.device.address},
                   {"kind", words_of(member.kind)},
                   {"class", class_text(member.device.pci_class)},
                   {"vendor", member.device.vendor},
                   {"device", member.device.device},
                   {"driver", member.device.driver}});
  }
  return out;
}

Json card_json(const GpuCard& card, const CardGroup& group) {
  Json out = {{"address", card.pci.address},
              {"kind", card.kind},
              {"vendor", card.pci.vendor},
              {"device", card.pci.device},
              {"class", class_text(card.pci.pci_class)},
              {"role", to_string(card.role)},
              {"state", to_string(card.state)}};
  const auto text = [&out](const char* name, const std::string& value) {
    if (!value.empty()) out[name] = value;
  };
  text("reason", card.reason);
  text("hint", card.hint);
  text("uuid", card.facts.uuid);
  text("model", card.facts.model);
  if (card.facts.memory_mb > 0) out["memory_mb"] = card.facts.memory_mb;
  text("driver_version", card.facts.driver_version);
  text("compute_cap", card.facts.compute_cap);
  text("mig_mode", card.facts.mig_mode);
  out["driver"] = card.pci.driver;
  text("iommu_group", card.pci.group);
  out["group"] = members_json(group.scan);
  if (card.pci.numa) out["numa_node"] = *card.pci.numa;
  out["bars"] = bars_json(card.pci.bars);
  out["reset_methods"] = card.pci.reset_methods;
  out["boot_vga"] = card.pci.boot_vga;
  out["virtual_functions"] = card.pci.virtual_functions;
  return out;
}

void print_inventory_json(std::ostream& out, const DeviceInventory& inventory) {
  Json devices = Json::array();
  for (const CardGroup& group : inventory.groups) {
    for (const GpuCard& card : group.cards) devices.push_back(card_json(card, group));
  }
  Json switches = Json::array();
  for (const PciDevice& device : inventory.switches) {
    switches.push_back(
        {{"address", device.address}, {"device", device.device}, {"driver", device.driver}});
  }
  Json instances = Json::array();
  for (const InventoryInstance& instance : inventory.instances) {
    instances.push_back({{"uuid", instance.uuid},
                         {"profile", instance.profile},
                         {"kind", instance.kind},
                         {"parent_gpu_uuid", instance.parent},
                         {"path", instance.path}});
  }
  print_json(out, {{"devices", std::move(devices)},
                   {"switches", std::move(switches)},
                   {"mig_instances", std::move(instances)},
                   {"notes", inventory.notes},
                   {"summary", inventory.summary}});
}

std::string group_words(const GpuGroupScan& group) {
  std::vector<std::string> others;
  for (const GroupMember& member : group.members) {
    if (member.kind == MemberKind::gpu) continue;
    others.push_back(cat(member_words(member.device), " ", words_of(member.kind)));
  }
  return others.empty() ? "" : cat("group ", or_dash(group.number), " also: ", join(others, ", "));
}

void print_inventory(const Context& context, const DeviceInventory& inventory) {
  Table table({"SLOT", "MODEL", "MEMORY", "GROUP", "NODE", "DRIVER", "ROLE", "STATE", "WHY"});
  for (const CardGroup& group : inventory.groups) {
    for (const GpuCard& card : group.cards) {
      const std::int64_t memory = card.facts.memory_mb;
      table.add({card.pci.address,
                 printable(card.facts.model.empty() ? card.kind : card.facts.model),
                 memory > 0 ? human_bytes(static_cast<std::uint64_t>(memory) << 20U) : "-",
                 or_dash(card.pci.group), card.pci.numa ? cat(*card.pci.numa) : "-",
                 or_dash(card.pci.driver), std::string(to_string(card.role)),
                 std::string(to_string(card.state)), or_dash(card.reason)});
    }
  }
  table.print(context.out, context.colour_out());
  for (const CardGroup& group : inventory.groups) {
    const std::string others = group_words(group.scan);
    if (!others.empty()) context.out << printable(others) << '\n';
    for (const GpuCard& card : group.cards) {
      if (!card.hint.empty()) {
        context.note(cat(card.pci.address, ": ", printable(card.hint)));
      }
    }
  }
  for (const InventoryInstance& instance : inventory.instances) {
    context.out << "mig " << instance.profile << ' ' << instance.uuid << " of "
                << or_dash(instance.parent) << '\n';
  }
}

struct ProbeOptions {
  std::shared_ptr<DeviceOptions> devices{};
  std::vector<std::string> vendors{};
};

int run_probe(Context& context, const ProbeOptions& options) {
  const auto paths = device_paths(context, *options.devices);
  if (!paths) return misuse(context, paths.error());
  InventoryOptions how;
  if (!options.vendors.empty()) how.vendors = options.vendors;
  for (std::string& vendor : how.vendors) vendor = lowercase(vendor);
  const auto inventory = read_inventory(context.host, *paths, how);
  if (!inventory) return context.fail(inventory.error());
  if (context.json()) {
    print_inventory_json(context.out, *inventory);
    return success;
  }
  if (inventory->groups.empty()) {
    context.note(inventory->summary);
  } else {
    print_inventory(context, *inventory);
  }
  for (const std::string& note : inventory->notes) context.note(printable(note));
  return success;
}

}  // namespace

void add_agent_probe(CLI::App& agent, Invocation& invocation) {
  const auto options = std::make_shared<ProbeOptions>();
  auto* probe = agent.add_subcommand("probe", "Show this host's GPUs and how each stands");
  probe
      ->add_option("--vendor", options->vendors,
                   "PCI vendors whose display controllers count, as in 10de,1002")
      ->type_name("ID")
      ->delimiter(',');
  options->devices = add_device_options(*probe);
  probe->callback([&invocation, options] {
    invocation.action = [&invocation, options] { return run_probe(invocation.context, *options); };
  });
}

}  // namespace fuse::cmd
