#include <utility>

#include "base/text.h"
#include "base/units.h"
#include "guest/command.h"
#include "guest/probe.h"

namespace fuse {

namespace {

constexpr std::size_t kept_output = 1024;
// A shell that reads the environment and becomes the command.
constexpr std::string_view with_environment = R"(set -a; . "$0"; set +a; exec "$@")";

class CommandProbe final : public Probe {
 public:
  std::unique_ptr<Command> command{};
  EventLoop::Registration report{};  // of one that could not be begun
  [[nodiscard]] bool is_stuck() const override {
    return command != nullptr && command->is_running();
  }
};

ProbeOutcome judge(const CommandResult& result, const ExecProbe& exec) {
  const std::string& name = exec.argv.front();
  if (result.timed_out) {
    return {.message = cat(name, " did not end within ", to_string(exec.timeout))};
  }
  return judge_command(result.status.shell_code(), result.output, name);
}

}  // namespace

std::unique_ptr<Probe> probe_exec(EventLoop& loop, Children& children, const ExecProbe& exec,
                                  OnProbed on_probed) {
  CommandPlan plan{
      .child = {.argv = exec.argv, .environment = guest_environment({}), .directory = "/"},
      .timeout = exec.timeout,
      .most_output = kept_output};
  if (!exec.env_file.empty()) {
    std::vector<std::string>& argv = plan.child.argv;
    argv.insert(argv.begin(), {"/bin/sh", "-c", std::string(with_environment), exec.env_file});
  }
  auto probe = std::make_unique<CommandProbe>();
  auto command = Command::start(
      loop, children, std::move(plan),
      [exec, on_probed](const CommandResult& result) { on_probed(judge(result, exec)); });
  if (command) {
    probe->command = *std::move(command);
  } else {
    probe->report = loop.after(
        {}, [on_probed, message = command.error().message] { on_probed({.message = message}); });
  }
  return probe;
}

}  // namespace fuse
