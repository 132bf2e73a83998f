#include <CLI/CLI.hpp>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <ostream>

#include "base/ids.h"
#include "base/quote.h"
#include "base/text.h"
#include "cmd/agent_options.h"
#include "cmd/commands.h"
#include "cmd/misuse.h"
#include "cmd/output.h"
#include "hostmode/mig/mig_apply.h"

namespace fuse::cmd {

namespace {

using Json = nlohmann::ordered_json;

struct AgentMigOptions {
  std::shared_ptr<DeviceOptions> devices{};
  std::vector<std::string> profiles{};
  std::vector<std::string> cards{};
  std::string uuid{};
};

// "1g.10gb=7"; a profile that is named twice is wanted as often as both say.
Result<std::vector<LayoutWish>> parse_wishes(const std::vector<std::string>& words) {
  std::vector<LayoutWish> wishes;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    const auto count = equals == std::string::npos
                           ? std::optional<std::int64_t>()
                           : parse_int(std::string_view(word).substr(equals + 1));
    if (!count || *count < 1 || *count > 1000) {
      return Error{ErrorCode::invalid_argument,
                   cat("--profile ", in_quotes(word), " is not PROFILE=COUNT, as in 1g.10gb=7")};
    }
    const std::string name = word.substr(0, equals);
    const auto same = std::ranges::find(wishes, name, &LayoutWish::profile);
    if (same != wishes.end()) {
      same->count += static_cast<int>(*count);
    } else {
      wishes.push_back({name, static_cast<int>(*count)});
    }
  }
  return wishes;
}

Json instance_json(const InventoryInstance& instance) {
  return {{"uuid", instance.uuid}, {"profile", instance.profile},
          {"kind", instance.kind}, {"parent_gpu_uuid", instance.parent},
          {"path", instance.path}, {"mig_uuid", instance.mig}};
}

int run_mig_apply(Context& context, const AgentMigOptions& options) {
  const auto paths = device_paths(context, *options.devices);
  if (!paths) return misuse(context, paths.error());
  auto wishes = parse_wishes(options.profiles);
  if (!wishes) return misuse(context, wishes.error());
  const MigApplyOptions how{
      .wishes = std::move(*wishes),
      .cards = options.cards,
      .writes = {.write = context.write_within},
      .new_uuid = [&context] { return lowercase(ulid_to_uuid(new_ulid(context.clock.wall()))); },
      .tell = [&context](const std::string& step) { context.note(printable(step)); }};
  const auto done = apply_mig(context.host, *paths, how);
  if (!done) return fail_at_device(context, done.error());
  if (context.json()) {
    Json instances = Json::array();
    for (const InventoryInstance& instance : done->instances) {
      instances.push_back(instance_json(instance));
    }
    print_json(context.out, {{"made", done->made}, {"instances", std::move(instances)}});
    return success;
  }
  for (const InventoryInstance& instance : done->instances) {
    context.out << instance.profile << ' ' << instance.uuid << " of " << instance.parent << '\n';
  }
  context.note(cat(done->made, " made, ", done->instances.size(), " in ", paths->mig().native()));
  return success;
}

Json view_json(const MigInstanceView& view) {
  Json holders = Json::array();
  for (const DeviceHolder& holder : view.holders) {
    holders.push_back(
        {{"pid", holder.pid}, {"command", holder.command}, {"service", holder.service}});
  }
  return {{"card", view.card},
          {"gpu_uuid", view.gpu},
          {"profile", view.instance.name},
          {"gpu_instance", view.instance.id},
          {"start", view.instance.start},
          {"size", view.instance.size},
          {"mig_uuid", view.mig},
          {"uuid", view.device},
          {"path", view.path},
          {"holders", std::move(holders)}};
}

std::string use_of(const MigInstanceView& view) {
  if (!view.holders.empty()) return holder_words(view.holders);
  if (view.device.empty()) return "made by others";
  return view.path.empty() ? "no device: fuse agent mig apply makes it" : "free";
}

int run_mig_list(Context& context, const AgentMigOptions& options) {
  const auto paths = device_paths(context, *options.devices);
  if (!paths) return misuse(context, paths.error());
  const auto views = list_mig(context.host, *paths);
  if (!views) return fail_at_device(context, views.error());
  if (context.json()) {
    Json instances = Json::array();
    for (const MigInstanceView& view : *views) instances.push_back(view_json(view));
    print_json(context.out, {{"instances", std::move(instances)}});
    return success;
  }
  if (views->empty()) {
    context.note("no card that nvidia-smi sees has MIG instances");
    return success;
  }
  Table table({"CARD", "PROFILE", "PLACE", "UUID", "MIG", "USE"});
  for (const MigInstanceView& view : *views) {
    table.add({view.card, printable(view.instance.name),
               cat(view.instance.start, ':', view.instance.size),
               view.device.empty() ? "-" : printable(view.device),
               view.mig.empty() ? "-" : printable(view.mig), printable(use_of(view))});
  }
  table.print(context.out, context.colour_out());
  return success;
}

int run_mig_destroy(Context& context, const AgentMigOptions& options) {
  const auto paths = device_paths(context, *options.devices);
  if (!paths) return misuse(context, paths.error());
  const KernelWrites writes{.write = context.write_within};
  if (auto gone = destroy_mig(context.host, *paths, options.uuid, writes); !gone) {
    return fail_at_device(context, gone.error());
  }
  context.note(cat(options.uuid, ": destroyed"));
  return success;
}

using Run = int (*)(Context&, const AgentMigOptions&);

void add_one(CLI::App& mig, Invocation& invocation, const std::string& name,
             const std::string& help, Run run) {
  const auto options = std::make_shared<AgentMigOptions>();
  auto* command = mig.add_subcommand(name, help);
  if (name == "apply") {
    command->add_option("--profile", options->profiles, "So many of it, as in 1g.10gb=7")
        ->type_name("PROFILE=N")
        ->expected(1)
        ->take_all();
    command->add_option("--gpu", options->cards, "Cut only this card, as in 0000:41:00.0")
        ->type_name("SLOT")
        ->expected(1)
        ->take_all();
  }
  if (name == "destroy") {
    command->add_option("UUID", options->uuid, "Of the instance, as list shows it")
        ->required()
        ->type_name("");
  }
  options->devices = add_device_options(*command);
  command->callback([&invocation, options, run] {
    invocation.action = [&invocation, options, run] { return run(invocation.context, *options); };
  });
}

}  // namespace

void add_agent_mig(CLI::App& agent, Invocation& invocation) {
  auto* mig = agent.add_subcommand("mig", "MIG instances of this host's GPUs");
  mig->require_subcommand(1);
  add_one(*mig, invocation, "apply",
          "Carve what is missing; without --profile, what was there before a reboot",
          run_mig_apply);
  add_one(*mig, invocation, "list", "Show them", run_mig_list);
  add_one(*mig, invocation, "destroy", "Take one away", run_mig_destroy);
}

}  // namespace fuse::cmd
