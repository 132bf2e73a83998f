#include <CLI/CLI.hpp>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "cmd/commands.h"
#include "cmd/output.h"
#include "cmd/target.h"

namespace fuse::cmd {

namespace {

constexpr std::int64_t page = 200;

struct Status {
  Target target{};
  std::optional<HostInfo> active_host{};
  std::size_t hosts = 0;
  bool all_hosts = true;
  std::map<std::string, std::int64_t> environments{};  // by state
  std::int64_t running_endpoints = 0;
};

Result<void> count_environments(EnvironmentApi& api, Status& status) {
  EnvironmentFilter filter{.host_id = status.target.active_host, .limit = page};
  do {
    const auto found = api.list(filter);
    if (!found) return found.error();
    for (const Environment& environment : found->environments) {
      ++status.environments[std::string(to_string(environment.state))];
      if (environment.state != EnvironmentState::running) continue;
      status.running_endpoints += static_cast<std::int64_t>(environment.endpoints.size());
    }
    filter.cursor = found->next_cursor;
  } while (!filter.cursor.empty());
  return {};
}

Result<Status> read_status(Context& context, const Target& target) {
  Status status{.target = target};
  const auto fleet = connect_fleet(context);
  if (!fleet) return fleet.error();
  const auto hosts = (*fleet)->list_hosts(page, "");
  if (!hosts) return hosts.error();
  status.hosts = hosts->hosts.size();
  status.all_hosts = hosts->next_cursor.empty();
  if (!target.active_host.empty()) {
    const auto host = (*fleet)->get_host(target.active_host);
    if (!host) return host.error();
    status.active_host = *host;
  }
  const auto api = context.connect(context);
  if (!api) return api.error();
  if (auto done = count_environments(**api, status); !done) return done.error();
  return status;
}

void print_status(const Context& context, const Status& status) {
  const Target& target = status.target;
  const auto row = [&](std::string_view name, const std::string& value) {
    context.out << padded(name, 12) << "  " << value << '\n';
  };
  row("context", target.name.empty() ? "FUSE_URL" : printable(target.name));
  row("address", printable(target.url));
  row("active host", status.active_host ? cat(printable(status.active_host->id), ", ",
                                              to_string(status.active_host->state))
                                        : std::string("none"));
  row("hosts", cat(status.hosts, status.all_hosts ? "" : " or more"));
  std::vector<std::string> parts;
  for (const auto& [state, count] : status.environments) parts.push_back(cat(count, ' ', state));
  row("environments", parts.empty() ? "none" : join(parts, ", "));
  row("endpoints", cat(status.running_endpoints));
}

nlohmann::ordered_json status_json(const Status& status) {
  const Target& target = status.target;
  return {{"context", target.name},
          {"base_url", target.url},
          {"master", target.master},
          {"active_host", target.active_host},
          {"host_count", status.hosts},
          {"host_count_complete", status.all_hosts},
          {"environments_by_state", status.environments},
          {"environment_scope", target.active_host.empty() ? "all" : target.active_host},
          {"running_endpoints", status.running_endpoints}};
}

int run_status(Context& context) {
  const auto target = find_target(context);
  if (!target) return context.fail(target.error());
  if (!*target) {
    return context.fail({ErrorCode::not_found,
                         "no active context: jobs run on this machine",
                         {{"hint",
                           "this machine's own process: fuse local status; an orchestrator "
                           "elsewhere: fuse connect URL"}}});
  }
  const auto status = read_status(context, **target);
  if (!status) return context.fail(status.error());
  if (context.json()) {
    print_json(context.out, status_json(*status));
  } else {
    print_status(context, *status);
  }
  return success;
}

int run_metrics(Context& context) {
  const auto fleet = connect_fleet(context);
  if (!fleet) return context.fail(fleet.error());
  const auto text = (*fleet)->metrics();
  if (!text) return context.fail(text.error());
  context.out << *text;
  return success;
}

}  // namespace

void add_status(CLI::App& app, Invocation& invocation) {
  app.add_subcommand("status", "The orchestrator, its hosts and environments in short")
      ->callback([&invocation] {
        invocation.action = [&invocation] { return run_status(invocation.context); };
      });
}

void add_metrics(CLI::App& app, Invocation& invocation) {
  app.add_subcommand("metrics", "The orchestrator's metrics, as Prometheus reads them")
      ->callback([&invocation] {
        invocation.action = [&invocation] { return run_metrics(invocation.context); };
      });
}

}  // namespace fuse::cmd
