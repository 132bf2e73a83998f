#include <sys/prctl.h>
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "cmd/agent_serve.h"
#include "cmd/agent_settings.h"
#include "cmd/commands.h"

namespace fuse::cmd {

namespace {

struct AgentServeOptions {
  std::map<std::string_view, std::string> values{};  // by variable
  std::string file{};
};

int run_agent_serve(Context& context, const AgentServeOptions& options) {
  // Disks and sockets of guests are nobody else's affair; and a list of processes
  // shows what this one is.
  ::umask(0077);
  ::prctl(PR_SET_NAME, "fuse-agent");
  AgentFlags flags;
  for (const auto& [variable, value] : options.values) {
    if (!value.empty()) flags.emplace(variable, value);
  }
  const auto settings = read_agent_settings(flags, context.variables, context.host, options.file);
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
  const auto options = std::make_shared<AgentServeOptions>();
  auto* serve = agent.add_subcommand("serve", "Serve this host's devices to orchestrators");
  for (const AgentSetting& setting : agent_settings()) {
    std::string help(setting.help);
    serve
        ->add_option(std::string(setting.flag), options->values[setting.variable],
                     help + " (" + std::string(setting.variable) + ")")
        ->type_name(std::string(setting.type));
  }
  serve
      ->add_option("--env-file", options->file,
                   "File of such settings, NAME=VALUE a line (usually /etc/fuse/agent.env)")
      ->type_name("FILE");
  serve->callback([&invocation, options] {
    invocation.action = [&invocation, options] {
      return run_agent_serve(invocation.context, *options);
    };
  });
}

void add_agent(CLI::App& app, Invocation& invocation) {
  auto* agent = app.add_subcommand("agent", "This machine as a GPU box");
  agent->require_subcommand(1);
  add_agent_serve(*agent, invocation);
}

}  // namespace fuse::cmd
