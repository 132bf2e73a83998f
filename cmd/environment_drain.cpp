#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "base/text.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/output.h"
#include "orchestrator/api/json.h"

namespace fuse::cmd {

namespace {

int run_drain(Context& context, const std::string& id) {
  const auto api = context.connect(context);
  if (!api) return context.fail(api.error());
  const auto environment = (*api)->drain(id);
  if (!environment) return context.fail(environment.error());
  if (context.json()) print_json(context.out, to_json(*environment));
  context.note(cat(id,
                   " is draining: its job goes on, and nothing new begins in it\n  end its job  ",
                   "fuse stop ", id, "\n  remove it    fuse rm ", id));
  return success;
}

int run_rotate_token(Context& context, const std::string& id) {
  const auto api = context.connect(context);
  if (!api) return context.fail(api.error());
  if (const auto done = (*api)->rotate_token(id); !done) return context.fail(done.error());
  context.note(cat(id, " has a new certificate and token in /fuse"));
  return success;
}

using Action = int (*)(Context& context, const std::string& id);

void add_action(CLI::App& app, Invocation& invocation, const std::string& name,
                const std::string& what, Action action) {
  const auto id = std::make_shared<std::string>();
  auto* command = app.add_subcommand(name, what);
  add_environment_id(*command, *id);
  command->callback([&invocation, id, action] {
    invocation.action = [&invocation, id, action] { return action(invocation.context, *id); };
  });
}

}  // namespace

void add_environment_drain(CLI::App& environment, Invocation& invocation) {
  add_action(environment, invocation, "drain", "Let its job go on, and begin nothing new in it",
             run_drain);
  add_action(environment, invocation, "rotate-token",
             "Give the guest's own server a new certificate and token", run_rotate_token);
}

}  // namespace fuse::cmd
