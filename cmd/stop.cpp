#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "base/text.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"

namespace fuse::cmd {

namespace {

int run_stop(Context& context, const std::string& id) {
  const auto api = context.connect(context);
  if (!api) return context.fail(api.error());
  if (const auto stopped = (*api)->stop_job(id); !stopped) return context.fail(stopped.error());
  context.note(cat("asked the job of ", id,
                   " to stop: TERM now, KILL when its grace is over\n  its end: fuse logs -f "
                   "--exit-code ",
                   id));
  return success;
}

}  // namespace

void add_stop(CLI::App& app, Invocation& invocation) {
  const auto id = std::make_shared<std::string>();
  auto* stop = app.add_subcommand("stop", "Stop a job: TERM, and KILL when its grace is over");
  add_environment_id(*stop, *id);
  stop->callback([&invocation, id] {
    invocation.action = [&invocation, id] { return run_stop(invocation.context, *id); };
  });
}

}  // namespace fuse::cmd
