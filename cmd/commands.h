#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cmd/context.h"

namespace CLI {
class App;
}

namespace fuse::cmd {

// One reading of the command line.  Each add_* function adds its commands to
// the tree; the one that was asked for leaves what is to be done in `action`,
// which runs once the whole line is known to be right.
struct Invocation {
  Context& context;
  std::function<int()> action{};
  // What stood behind `--`, byte for byte.
  std::optional<std::vector<std::string>> command{};
  bool takes_command = false;
};

void add_up(CLI::App& app, Invocation& invocation);
void add_run(CLI::App& app, Invocation& invocation);
void add_logs(CLI::App& app, Invocation& invocation);
void add_stop(CLI::App& app, Invocation& invocation);
void add_ps(CLI::App& app, Invocation& invocation);
void add_exec(CLI::App& app, Invocation& invocation);
void add_cp(CLI::App& app, Invocation& invocation);
void add_shell(CLI::App& app, Invocation& invocation);
void add_rm(CLI::App& app, Invocation& invocation);
void add_environment(CLI::App& app, Invocation& invocation);
void add_environment_drain(CLI::App& environment, Invocation& invocation);
void add_environment_watch(CLI::App& environment, Invocation& invocation);
void add_init(CLI::App& app, Invocation& invocation);
void add_validate(CLI::App& app, Invocation& invocation);
void add_compile(CLI::App& app, Invocation& invocation);
void add_schema(CLI::App& app, Invocation& invocation);
void add_explain(CLI::App& app, Invocation& invocation);
void add_host(CLI::App& app, Invocation& invocation);
void add_connect(CLI::App& app, Invocation& invocation);
void add_context(CLI::App& app, Invocation& invocation);
void add_apikeys(CLI::App& app, Invocation& invocation);
void add_status(CLI::App& app, Invocation& invocation);
void add_metrics(CLI::App& app, Invocation& invocation);
void add_image(CLI::App& app, Invocation& invocation);
void add_image_upkeep(CLI::App& image, Invocation& invocation);
void add_local(CLI::App& app, Invocation& invocation);
void add_agent(CLI::App& app, Invocation& invocation);
void add_agent_serve(CLI::App& agent, Invocation& invocation);
void add_agent_probe(CLI::App& agent, Invocation& invocation);
void add_agent_bind(CLI::App& agent, Invocation& invocation);
void add_agent_mig(CLI::App& agent, Invocation& invocation);
void add_agent_doctor(CLI::App& agent, Invocation& invocation);
void add_orchestrator(CLI::App& app, Invocation& invocation);
void add_completion(CLI::App& app, Invocation& invocation);
void add_man_pages(CLI::App& app, Invocation& invocation);
void add_version(CLI::App& app, Invocation& invocation);

// The whole tree, in the order of --help.
void add_commands(CLI::App& app, Invocation& invocation);

// Reads the command line (without the program's name), does what it asks for
// and returns the exit code.
int run(const std::vector<std::string>& arguments, Context& context);

}  // namespace fuse::cmd
