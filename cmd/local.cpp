#include <sys/prctl.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/log.h"
#include "base/quiet_log.h"
#include "base/text.h"
#include "base/version.h"
#include "cmd/agreement.h"
#include "cmd/commands.h"
#include "cmd/connect.h"
#include "cmd/local_agent.h"
#include "cmd/local_daemon.h"
#include "cmd/local_purge.h"
#include "cmd/output.h"
#include "remote/remote_environments.h"

namespace fuse::cmd {

namespace {

int run_local_up(Context& context) {
  const auto local = local_client(context);
  if (!local) return context.fail(local.error());
  const auto info = (*local)->ensure(AcceptBuild::same);
  if (!info) return context.fail(info.error());
  context.note(cat("fuse's background process runs (pid ", info->pid, ")"));
  return success;
}

int run_local_down(Context& context) {
  const auto local = local_client(context);
  if (!local) return context.fail(local.error());
  const auto was = (*local)->stop();
  if (!was) return context.fail(was.error());
  context.note(*was ? cat("stopped fuse's background process (pid ", (*was)->pid,
                          "); VMs go on, and the next command that needs it starts it again")
                    : std::string("fuse's background process does not run"));
  return success;
}

nlohmann::ordered_json status_json(const Config& config, const std::optional<DaemonInfo>& info,
                                   std::size_t environments) {
  nlohmann::ordered_json json;
  json["running"] = info.has_value();
  if (info) {
    json["pid"] = info->pid;
    json["version"] = info->version;
    json["build_id"] = info->build_id;
    json["started_at"] = info->started_at;
    json["environments"] = environments;
  }
  json["state_dir"] = config.state_dir.native();
  json["images_dir"] = config.images_dir.native();
  return json;
}

// How many environments it has; it must run.
Result<std::size_t> count_environments(const Context& context, const LocalClient& local) {
  auto http = local.http();
  if (!http) return http.error();
  const auto page = RemoteEnvironments(*std::move(http), context.clock).list({.limit = 200});
  if (!page) return page.error();
  return page->environments.size();
}

int run_local_status(Context& context) {
  const auto config = read_config(context.variables);
  if (!config) return context.fail(config.error());
  const auto local = local_client(context);
  if (!local) return context.fail(local.error());
  const auto info = (*local)->look();
  if (!info) return context.fail(info.error());
  std::size_t environments = 0;
  if (*info && (*info)->build_id == build_id()) {
    const auto counted = count_environments(context, **local);
    if (!counted) return context.fail(counted.error());
    environments = *counted;
  }
  if (context.json()) {
    print_json(context.out, status_json(*config, *info, environments));
    return success;
  }
  if (*info) {
    context.out << "running   pid " << (*info)->pid << ", version " << (*info)->version << ", for "
                << age_of((*info)->started_at, context.clock.wall()) << '\n'
                << "alive     " << environments << " environments\n";
  } else {
    context.out << "running   no; a command that needs it starts it\n";
  }
  context.out << "state     " << config->state_dir.native() << '\n'
              << "images    " << config->images_dir.native() << '\n'
              << "log       " << LocalPaths{config->state_dir}.log().native() << '\n';
  return success;
}

// The background process itself.
int run_local_serve(Context& context, const std::string& state) {
  // Whatever it makes is this user's alone; and in a list of processes it would
  // be called "exe" otherwise.
  ::umask(0077);
  ::prctl(PR_SET_NAME, "fuse");
  const auto config = read_config([&](const std::string& name) -> std::optional<std::string> {
    return name == "FUSE_STATE" ? std::optional(state) : context.variables(name);
  });
  if (!config) return context.fail(config.error());
  StreamLog stream(context.err, context.clock, LogFormat::text, LogLevel::info);
  QuietLog log(stream, context.clock);
  const LocalPaths paths{config->state_dir};
  const auto served = serve_local(
      {.paths = paths}, {.host = context.host,
                         .clock = context.clock,
                         .log = log,
                         .watch_signals = context.watch_signals,
                         .make_agent = [&](std::function<void()> on_end) {
                           return make_local_agent(*config, paths, context, log, std::move(on_end));
                         }});
  if (!served) return context.fail(served.error());
  return success;
}

void add_simple(CLI::App& local, Invocation& invocation, const std::string& name,
                const std::string& help, int (*work)(Context&)) {
  local.add_subcommand(name, help)->callback([&invocation, work] {
    invocation.action = [&invocation, work] { return work(invocation.context); };
  });
}

void add_down(CLI::App& local, Invocation& invocation) {
  struct Options {
    bool purge = false;
    bool yes = false;
  };
  const auto options = std::make_shared<Options>();
  auto* down = local.add_subcommand("down", "Stop it; VMs go on");
  auto* purge = down->add_flag("--purge", options->purge,
                               "Also remove every environment, its output and all state");
  down->add_flag("-y,--yes", options->yes, "Do not ask")->needs(purge);
  down->callback([&invocation, options] {
    invocation.action = [&invocation, options] {
      Context& context = invocation.context;
      if (!options->purge) return run_local_down(context);
      if (!options->yes) {
        const auto code = not_agreed(context, "every local environment, with its disk and output");
        if (code) return *code;
      }
      return purge_local(context);
    };
  });
}

}  // namespace

void add_local(CLI::App& app, Invocation& invocation) {
  auto* local = app.add_subcommand("local", "The background process that serves this user");
  local->require_subcommand(1);
  add_simple(*local, invocation, "up", "Start it, unless it runs", run_local_up);
  add_down(*local, invocation);
  add_simple(*local, invocation, "status", "Show whether it runs, and where", run_local_status);

  const auto state = std::make_shared<std::string>();
  auto* serve = local->add_subcommand("serve", "Be that process");
  serve->group("");
  serve->add_option("--state", *state, "The state folder")->required()->type_name("DIR");
  serve->callback([&invocation, state] {
    invocation.action = [&invocation, state] {
      return run_local_serve(invocation.context, *state);
    };
  });
}

}  // namespace fuse::cmd
