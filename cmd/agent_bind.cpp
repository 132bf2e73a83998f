#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "cmd/agent_options.h"
#include "cmd/commands.h"
#include "cmd/output.h"
#include "hostmode/devices/bind.h"

namespace fuse::cmd {

namespace {

using Json = nlohmann::ordered_json;

struct AgentBindOptions {
  std::shared_ptr<DeviceOptions> devices{};
  std::vector<std::string> slots{};
  std::vector<std::string> vendors{};
  std::string unbind{};
  bool list = false;
};

std::string_view words_of(GroupOutcome::Kind kind) {
  switch (kind) {
    case GroupOutcome::Kind::bound:
      return "bound";
    case GroupOutcome::Kind::already:
      return "already bound";
    case GroupOutcome::Kind::left_alone:
      return "left alone";
    case GroupOutcome::Kind::failed:
      break;
  }
  return "failed";
}

Json to_json(const GroupOutcome& outcome) {
  Json out = {{"iommu_group", outcome.group},
              {"slots", outcome.slots},
              {"outcome", words_of(outcome.kind)}};
  if (!outcome.reason.empty()) out["reason"] = outcome.reason;
  if (!outcome.hint.empty()) out["hint"] = outcome.hint;
  return out;
}

void print_outcomes(const Context& context, const std::vector<GroupOutcome>& outcomes) {
  if (context.json()) {
    Json groups = Json::array();
    for (const GroupOutcome& outcome : outcomes) groups.push_back(to_json(outcome));
    print_json(context.out, {{"groups", std::move(groups)}});
    return;
  }
  for (const GroupOutcome& outcome : outcomes) {
    std::ostream& out = outcome.kind == GroupOutcome::Kind::failed ? context.err : context.out;
    out << join(outcome.slots, " ") << ": " << words_of(outcome.kind);
    if (!outcome.reason.empty()) out << ": " << printable(outcome.reason);
    out << '\n';
    if (!outcome.hint.empty()) context.err << "  " << printable(outcome.hint) << '\n';
  }
}

int run_bind(Context& context, const DevicePaths& paths, const AgentBindOptions& options,
             const BindOptions& how) {
  const auto outcomes = bind_devices(context.host, paths, how);
  if (!outcomes) return fail_at_device(context, outcomes.error());
  print_outcomes(context, *outcomes);
  const auto count = [&](GroupOutcome::Kind kind) {
    return std::ranges::count(*outcomes, kind, &GroupOutcome::kind);
  };
  if (outcomes->empty()) {
    return context.fail({ErrorCode::internal,
                         "there is no GPU here to bind",
                         {{"hint", "what there is: fuse agent probe"}}});
  }
  // A card that was named, or the only ones there are, and that was left alone.
  const auto left = count(GroupOutcome::Kind::left_alone);
  const bool none = left == static_cast<std::ptrdiff_t>(outcomes->size());
  const bool named = !options.slots.empty() && left > 0;
  return count(GroupOutcome::Kind::failed) > 0 || none || named ? failed : success;
}

int run_unbind(Context& context, const DevicePaths& paths, const AgentBindOptions& options,
               const BindOptions& how) {
  const auto outcome = unbind_device(context.host, paths, options.unbind, how);
  if (!outcome) return fail_at_device(context, outcome.error());
  const bool moved = outcome->kind == GroupOutcome::Kind::bound;
  if (context.json()) {
    print_json(context.out, {{"iommu_group", outcome->group},
                             {"slots", outcome->slots},
                             {"outcome", moved ? "given back" : "was not bound"}});
  } else {
    context.out << join(outcome->slots, " ") << (moved ? ": given back\n" : ": was not bound\n");
  }
  return success;
}

// The lines of the inventory, each with the drivers that its functions have now.
int run_list(Context& context, const DevicePaths& paths) {
  const auto files = read_device_files(context.host, paths);
  if (!files) return context.fail(files.error());
  Json groups = Json::array();
  Table table({"COUNT", "KIND", "SLOTS", "DRIVERS", "UUIDS"});
  for (const InventoryGroup& group : files->groups) {
    std::vector<std::string> drivers;
    for (const std::string& slot : group.slots) {
      const std::string driver = current_driver(context.host, slot);
      drivers.push_back(driver.empty() ? "-" : driver);
    }
    std::vector<std::string> uuids;
    uuids.reserve(group.gpus.size());
    for (const GpuFacts& gpu : group.gpus) uuids.push_back(gpu.uuid.empty() ? "-" : gpu.uuid);
    groups.push_back({{"count", group.count},
                      {"kind", group.kind},
                      {"slots", group.slots},
                      {"drivers", drivers},
                      {"uuids", uuids}});
    table.add({cat(group.count), printable(group.kind), join(group.slots, " "),
               printable(join(drivers, " ")), printable(join(uuids, " "))});
  }
  if (context.json()) {
    print_json(context.out, {{"groups", std::move(groups)}});
  } else if (files->groups.empty()) {
    context.note(cat("nothing is bound: ", paths.vfio().native(), " has no groups"));
  } else {
    table.print(context.out, context.colour_out());
  }
  return success;
}

int run_agent_bind(Context& context, const AgentBindOptions& options) {
  const auto paths = device_paths(context, *options.devices);
  const auto misuse = [&](const Error& error) {
    print_error(context.err, error, context.colour_err());
    return static_cast<int>(wrong_usage);
  };
  if (!paths) return misuse(paths.error());
  if (options.list + !options.unbind.empty() + !options.slots.empty() > 1) {
    return misuse({ErrorCode::invalid_argument, "--list, --unbind and slots exclude each other"});
  }
  BindOptions how{.slots = options.slots, .writes = {.write = context.write_within}};
  if (!options.vendors.empty()) how.inventory.vendors = options.vendors;
  if (options.list) return run_list(context, *paths);
  if (!options.unbind.empty()) return run_unbind(context, *paths, options, how);
  return run_bind(context, *paths, options, how);
}

}  // namespace

void add_agent_bind(CLI::App& agent, Invocation& invocation) {
  const auto options = std::make_shared<AgentBindOptions>();
  auto* bind =
      agent.add_subcommand("bind", "Make GPUs ready for VMs: their IOMMU groups go to vfio-pci");
  bind->add_option("SLOT", options->slots, "Only the groups of these, as in 0000:41:00.0")
      ->type_name("");
  bind->add_flag("--list", options->list, "Show what is bound");
  bind->add_option("--unbind", options->unbind, "Give the group of this back to the host")
      ->type_name("SLOT");
  bind->add_option("--vendor", options->vendors,
                   "PCI vendors whose display controllers count, as in 10de,1002")
      ->type_name("ID")
      ->delimiter(',');
  options->devices = add_device_options(*bind);
  bind->callback([&invocation, options] {
    invocation.action = [&invocation, options] {
      return run_agent_bind(invocation.context, *options);
    };
  });
}

}  // namespace fuse::cmd
