#include <sys/prctl.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "cmd/agent_serve.h"
#include "cmd/agent_settings.h"
#include "cmd/commands.h"

namespace fuse::cmd {

namespace {

int run_agent_serve(Context& context, const SettingFlags& flags) {
  // Disks and sockets of guests are nobody else's affair; and a list of processes
  // shows what this one is.
  ::umask(0077);
  ::prctl(PR_SET_NAME, "fuse-agent");
  const auto settings = read_agent_settings(flags, context.variables, context.host);
  if (!settings) return context.fail(settings.error());
  StreamLog log(context.err, context.clock, settings->log_format, LogLevel::info);
  const auto served = serve_agent(*settings, {.host = context.host,
                                              .clock = context.clock,
                                              .log = log,
                                              .watch_signals = context.watch_signals,
                                              .variables = context.variables});
  if (!served) return context.fail(served.error());
  return success;
}

}  // namespace

void add_agent_serve(CLI::App& agent, Invocation& invocation) {
  const auto flags = std::make_shared<SettingFlags>();
  auto* serve = agent.add_subcommand("serve", "Serve this host's devices to orchestrators");
  add_setting_flags(*serve, agent_setting_file().settings, usual_agent_file, *flags);
  serve->callback([&invocation, flags] {
    invocation.action = [&invocation, flags] {
      return run_agent_serve(invocation.context, *flags);
    };
  });
}

void add_agent(CLI::App& app, Invocation& invocation) {
  auto* agent = app.add_subcommand("agent", "This machine as a GPU box");
  agent->require_subcommand(1);
  add_agent_serve(*agent, invocation);
  add_agent_probe(*agent, invocation);
  add_agent_bind(*agent, invocation);
  add_agent_mig(*agent, invocation);
  add_agent_doctor(*agent, invocation);
}

}  // namespace fuse::cmd
