#include <CLI/CLI.hpp>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>
#include <string>

#include "base/text.h"
#include "base/units.h"
#include "cmd/arguments.h"
#include "cmd/commands.h"
#include "cmd/interruption.h"
#include "cmd/job_text.h"
#include "cmd/output.h"
#include "cmd/progress.h"
#include "orchestrator/api/json.h"

namespace fuse::cmd {

namespace {

// "state  running", "create vm  start the vm on host local (4.6 s)", "job  build 2/3".
std::string words_of(const EnvironmentEvent& event) {
  constexpr std::size_t width = 14;
  const auto line = [](std::string_view what, std::string words) {
    return cat(padded(what, width), "  ", words);
  };
  const std::string error = event.error.empty() ? "" : cat(": ", printable(event.error));
  if (event.state) return line("state", cat(to_string(*event.state), error));
  if (event.job) return line("job", short_text(*event.job));
  std::string words = printable(event.message);
  if (event.exit_code.value_or(0) != 0) words += cat(": exit ", *event.exit_code);
  if (event.duration_ms) {
    words += cat(" (", human_duration(std::chrono::milliseconds(*event.duration_ms)), ")");
  }
  return line(step_label(event), words + error);
}

int run_watch(Context& context, const std::string& id) {
  Interruption interruption(context);
  const auto api = context.connect(context);
  if (!api) return context.fail(api.error());
  bool has_failed = false;
  const auto show = [&](const EnvironmentEvent& event) {
    has_failed = event.state == EnvironmentState::failed;
    if (context.json()) {
      context.out << to_json(event).dump() << '\n' << std::flush;
    } else {
      context.out << printable(event.updated_at) << "  " << words_of(event) << '\n' << std::flush;
    }
    if (context.out.good()) return true;
    interruption.output_closed();
    return false;
  };
  const auto watched = (*api)->events(id, {.all_kinds = true}, show, interruption.token());
  if (interruption.happened()) {
    context.note(cat("\nno longer watched; ", id, " is not touched"));
    return interruption.exit_code();
  }
  if (!watched) return context.fail(watched.error());
  return has_failed ? failed : success;
}

}  // namespace

void add_environment_watch(CLI::App& environment, Invocation& invocation) {
  const auto id = std::make_shared<std::string>();
  auto* watch = environment.add_subcommand("watch", "Show what happens to it, until its end");
  watch->alias("follow");
  add_environment_id(*watch, *id);
  watch->callback([&invocation, id] {
    invocation.action = [&invocation, id] { return run_watch(invocation.context, *id); };
  });
}

}  // namespace fuse::cmd
