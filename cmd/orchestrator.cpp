#include <sys/prctl.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/commands.h"
#include "cmd/orchestrator_serve.h"

namespace fuse::cmd {

namespace {

int run_orchestrator_serve(Context& context, const SettingFlags& flags) {
  // The database and the key are nobody else's affair; and a list of processes
  // shows what this one is.
  ::umask(0077);
  ::prctl(PR_SET_NAME, "fuse-orch");
  const auto settings = read_orchestrator_settings(flags, context.variables, context.host);
  if (!settings) return context.fail(settings.error());
  StreamLog log(context.err, context.clock, settings->log_format, LogLevel::info);
  const auto served = serve_orchestrator(*settings, {.host = context.host,
                                                     .clock = context.clock,
                                                     .log = log,
                                                     .watch_signals = context.watch_signals});
  if (!served) return context.fail(served.error());
  return success;
}

}  // namespace

void add_orchestrator(CLI::App& app, Invocation& invocation) {
  auto* orchestrator = app.add_subcommand("orchestrator", "The control plane of a fleet");
  orchestrator->require_subcommand(1);
  const auto flags = std::make_shared<SettingFlags>();
  auto* serve =
      orchestrator->add_subcommand("serve", "Schedule jobs over hosts, and answer for them");
  add_setting_flags(*serve, orchestrator_setting_file().settings, usual_orchestrator_file, *flags);
  serve->callback([&invocation, flags] {
    invocation.action = [&invocation, flags] {
      return run_orchestrator_serve(invocation.context, *flags);
    };
  });
}

}  // namespace fuse::cmd
