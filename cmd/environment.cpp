#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "base/units.h"
#include "cmd/agreement.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/health_wait.h"
#include "cmd/job_text.h"
#include "cmd/output.h"
#include "cmd/target.h"
#include "orchestrator/api/json.h"

namespace fuse::cmd {

namespace {

struct ListOptions {
  EnvironmentFilter filter{};
  bool all_pages = false;
  bool all_hosts = false;
};

std::string size_text(const ResourceSpec& spec) {
  std::string text = cat(spec.cpus, " CPU");
  if (spec.ram_mb > 0)
    text += cat(", ", human_bytes(static_cast<std::uint64_t>(spec.ram_mb) << 20U));
  if (spec.gpus > 0) text += cat(", ", spec.gpus, " GPU");
  return text;
}

Result<EnvironmentPage> read_pages(EnvironmentApi& api, const ListOptions& options) {
  EnvironmentFilter filter = options.filter;
  EnvironmentPage all;
  for (;;) {
    auto page = api.list(filter);
    if (!page) return page;
    std::ranges::move(page->environments, std::back_inserter(all.environments));
    all.next_cursor = page->next_cursor;
    if (!options.all_pages || page->next_cursor.empty()) return all;
    filter.cursor = page->next_cursor;
  }
}

void print_table(const Context& context, const EnvironmentPage& page) {
  const bool any_health = std::ranges::any_of(
      page.environments,
      [](const Environment& environment) { return environment.health.has_value(); });
  const auto row = [any_health](std::vector<std::string> cells, std::string health) {
    if (any_health) cells.insert(cells.begin() + 3, std::move(health));
    return cells;
  };
  Table table(row({"ID", "STATE", "JOB", "HOST", "SIZE", "AGE"}, "HEALTH"));
  for (const Environment& environment : page.environments) {
    table.add(
        row({printable(environment.id), std::string(to_string(environment.state)),
             environment.job ? short_text(*environment.job) : "-", or_dash(environment.host_id),
             size_text(environment.spec), age_of(environment.created_at, context.clock.wall())},
            environment.health ? or_dash(environment.health->state) : "-"));
  }
  table.print(context.out, context.colour_out());
  if (!page.next_cursor.empty()) {
    context.note(cat("there are more: --cursor ", page.next_cursor, ", or --all-pages"));
  }
}

// Lists are about the active host, where there is one, unless another is meant.
Result<ListOptions> on_active_host(const Context& context, ListOptions options) {
  if (options.all_hosts || !options.filter.host_id.empty()) return options;
  const auto target = find_target(context);
  if (!target) return target.error();
  if (*target) options.filter.host_id = (*target)->active_host;
  return options;
}

int run_list(Context& context, const ListOptions& wanted) {
  const auto limited = on_active_host(context, wanted);
  if (!limited) return context.fail(limited.error());
  const ListOptions& options = *limited;
  const auto api = context.connect(context);
  if (!api) return context.fail(api.error());
  const auto page = read_pages(**api, options);
  if (!page) return context.fail(page.error());
  if (context.json()) {
    print_json(context.out, to_json(*page));
  } else if (page->environments.empty()) {
    context.note(options.filter.include_ended ? "there are no environments"
                                              : "there are no environments now; those that "
                                                "ended: fuse environment list --ended");
  } else {
    print_table(context, *page);
  }
  return success;
}

void add_list_options(CLI::App& command, ListOptions& options) {
  command.add_option("--task-id", options.filter.task_id, "Of this task")->type_name("ID");
  must_be_one_of(
      command.add_option("--state", options.filter.state, "In this state")->type_name("STATE"),
      {"provisioning", "running", "draining", "destroying", "destroyed", "failed"});
  command.add_option("--host-id", options.filter.host_id, "On this host")->type_name("ID");
  must_be_at_least(
      command.add_option("--limit", options.filter.limit, "At most so many")->type_name("N"), 1);
  command.add_option("--cursor", options.filter.cursor, "Go on where a list ended")
      ->type_name("CURSOR");
  command.add_flag("--all-pages", options.all_pages, "However many there are");
}

void add_list(CLI::App& app, Invocation& invocation, const std::string& name,
              const std::string& ended_flags) {
  const auto options = std::make_shared<ListOptions>();
  auto* list = app.add_subcommand(name, "List environments");
  add_list_options(*list, *options);
  if (name == "list") {
    list->add_flag("--all", options->all_hosts, "On every host, not the active one alone");
  }
  list->add_flag(ended_flags, options->filter.include_ended, "Also those that have ended");
  list->callback([&invocation, options] {
    invocation.action = [&invocation, options] { return run_list(invocation.context, *options); };
  });
}

void print_details(const Context& context, const Environment& environment) {
  const auto row = [&context](std::string_view name, const std::string& value) {
    if (!value.empty()) context.out << padded(name, 10) << "  " << printable(value) << '\n';
  };
  row("id", environment.id);
  row("uid", environment.uid);
  row("state", std::string(to_string(environment.state)));
  row("error", environment.error);
  row("host", environment.host_id);
  row("image", environment.spec.image);
  row("size", size_text(environment.spec));
  if (environment.job) {
    row("job", environment.job->state == JobState::exited ? end_text(*environment.job)
                                                          : short_text(*environment.job));
    row("output", human_bytes(environment.job->log_bytes));
  }
  if (environment.health) {
    row("health", health_text(*environment.health, context.clock.wall()));
  }
  for (const Endpoint& endpoint : environment.endpoints) row(endpoint.as, endpoint.url);
  row("created", environment.created_at);
  row("changed", environment.updated_at);
}

int run_get(Context& context, const std::string& id, bool include_ended) {
  const auto api = context.connect(context);
  if (!api) return context.fail(api.error());
  const auto environment = (*api)->get(id, include_ended);
  if (!environment) return context.fail(environment.error());
  if (context.json()) {
    print_json(context.out, to_json(*environment));
  } else {
    print_details(context, *environment);
  }
  return success;
}

void add_get(CLI::App& app, Invocation& invocation) {
  struct Options {
    std::string id{};
    bool ended = false;
  };
  const auto options = std::make_shared<Options>();
  auto* get = app.add_subcommand("get", "Show one environment");
  add_environment_id(*get, options->id);
  get->add_flag("--ended", options->ended, "Also when it has ended");
  get->callback([&invocation, options] {
    invocation.action = [&invocation, options] {
      return run_get(invocation.context, options->id, options->ended);
    };
  });
}

struct DestroyOptions {
  std::vector<std::string> ids{};
  bool yes = false;
};

int run_destroy(Context& context, const DestroyOptions& options) {
  if (!options.yes) {
    const auto code = not_agreed(context, cat(join(options.ids, ", "), " with its disk"));
    if (code) return *code;
  }
  const auto api = context.connect(context);
  if (!api) return context.fail(api.error());
  int code = success;
  for (const std::string& id : options.ids) {
    if (const auto done = (*api)->destroy(id); !done) {
      code = context.fail(in_context(id, done.error()));
    } else {
      context.note(cat(id, " is removed; its output stays: fuse logs ", id));
    }
  }
  return code;
}

void add_destroy(CLI::App& app, Invocation& invocation, const std::string& name,
                 const std::vector<std::string>& aliases) {
  const auto options = std::make_shared<DestroyOptions>();
  auto* destroy = app.add_subcommand(name, "Remove environments, their VMs and disks");
  for (const std::string& alias : aliases) destroy->alias(alias);
  add_environment_ids(*destroy, options->ids);
  destroy->add_flag("-y,--yes", options->yes, "Do not ask");
  destroy->callback([&invocation, options] {
    invocation.action = [&invocation, options] {
      return run_destroy(invocation.context, *options);
    };
  });
}

}  // namespace

void add_ps(CLI::App& app, Invocation& invocation) {
  add_list(app, invocation, "ps", "-a,--all,--ended");
}

void add_rm(CLI::App& app, Invocation& invocation) {
  add_destroy(app, invocation, "rm", {});
}

void add_environment(CLI::App& app, Invocation& invocation) {
  auto* environment = app.add_subcommand("environment", "Look at environments and work in them");
  for (const char* alias : {"environments", "env", "envs"}) environment->alias(alias);
  environment->require_subcommand(1);
  add_list(*environment, invocation, "list", "--ended");
  add_get(*environment, invocation);
  add_environment_watch(*environment, invocation);
  add_exec(*environment, invocation);
  add_shell(*environment, invocation);
  add_environment_drain(*environment, invocation);
  add_destroy(*environment, invocation, "destroy", {"rm", "delete"});
}

}  // namespace fuse::cmd
