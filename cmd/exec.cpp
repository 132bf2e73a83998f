#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>
#include <nlohmann/json.hpp>
#include <ostream>

#include "base/text.h"
#include "base/units.h"
#include "cmd/arguments.h"
#include "cmd/attach_io.h"
#include "cmd/commands.h"
#include "cmd/interruption.h"
#include "cmd/output.h"
#include "orchestrator/api/json.h"

namespace fuse::cmd {

namespace {

struct ExecOptions {
  std::string id{};
  std::vector<std::string> command{};
  std::string shell{};
  std::string timeout{};
};

Error nothing_to_run(const std::string& id) {
  return {ErrorCode::invalid_argument,
          "which command?",
          {{"hint", cat("put it behind two dashes: fuse exec ", id, " -- COMMAND [ARGUMENT...]")}}};
}

// The request of the exec route, which answers once the command has ended.
Result<ExecRequest> whole_request(const ExecOptions& options) {
  ExecRequest request{.cmd = options.command, .shell = options.shell};
  if (options.timeout.empty()) return request;
  const auto timeout = parse_duration(options.timeout);
  if (!timeout) return in_context("--timeout", timeout.error());
  request.timeout_ms = std::chrono::duration_cast<std::chrono::milliseconds>(*timeout).count();
  if (request.timeout_ms <= 0) {
    return Error{ErrorCode::invalid_argument, "--timeout must be at least 1ms"};
  }
  return request;
}

int exec_whole(Context& context, EnvironmentApi& api, const ExecOptions& options) {
  const auto request = whole_request(options);
  if (!request) return context.fail_own(request.error());
  const auto result = api.exec(options.id, *request);
  if (!result) return context.fail_own(result.error());
  if (context.json()) {
    print_json(context.out, to_json(*result));
  } else {
    context.out << result->out << std::flush;
    context.err << result->err << std::flush;
  }
  return result->exit_code;
}

// Runs it with its streams connected to ours.
int exec_streaming(Context& context, EnvironmentApi& api, const ExecOptions& options,
                   Interruption& interruption) {
  AttachRequest request{.cmd = options.command, .tty = false};
  if (request.cmd.empty()) request.cmd = {"sh", "-lc", options.shell};
  const auto session = api.attach(options.id, request);
  if (!session) {
    // An orchestrator that only knows terminals; then it is all or nothing.
    if (session.error().code == ErrorCode::invalid_argument &&
        session.error().message.find("tty=1") != std::string::npos) {
      return exec_whole(context, api, options);
    }
    return context.fail_own(session.error());
  }
  const std::stop_callback end(interruption.token(), [&session] { (*session)->close(); });
  std::optional<InputPump> pump;
  if (context.terminal.in_is_terminal()) {
    (void)(*session)->write({.type = AttachFrameType::stdin_bytes});
  } else {
    pump.emplace(**session, context.terminal.input_fd());
  }
  const auto done = write_output(context, **session);
  (*session)->close();
  if (interruption.happened()) return interruption.exit_code();
  if (!done) return context.fail_own(done.error());
  if (done->output_closed) return output_closed;
  if (done->exit_code) return *done->exit_code;
  return context.fail_own(
      {ErrorCode::unreachable, cat("the connection to ", options.id,
                                   " ended before the command did; it was ended with it")});
}

int run_exec(Context& context, ExecOptions options,
             const std::optional<std::vector<std::string>>& command) {
  if (command) {
    options.command.insert(options.command.end(), command->begin(), command->end());
  }
  if (options.command.empty() == options.shell.empty()) {
    return context.fail_own(
        options.command.empty()
            ? nothing_to_run(options.id)
            : Error{ErrorCode::invalid_argument, "a command and --shell are mutually exclusive"});
  }
  Interruption interruption(context);
  const auto api = context.connect(context);
  if (!api) return context.fail_own(api.error());
  const bool whole = context.json() || !options.timeout.empty();
  return whole ? exec_whole(context, **api, options)
               : exec_streaming(context, **api, options, interruption);
}

}  // namespace

void add_exec(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<ExecOptions>();
  auto* exec = app.add_subcommand("exec", "Run a command in an environment: exec ID -- COMMAND");
  add_environment_id(*exec, options->id);
  exec->add_option("COMMAND", options->command, "Its words; behind -- they may begin with a dash")
      ->type_name("");
  exec->add_option("--shell", options->shell, "Run this text with sh -lc")->type_name("TEXT");
  exec->add_option("--timeout", options->timeout,
                   "End it after this time, 10 minutes at most; its output then comes at the end")
      ->type_name("DURATION");
  exec->callback([&invocation, options] {
    invocation.takes_command = true;
    invocation.action = [&invocation, options] {
      return run_exec(invocation.context, *options, invocation.command);
    };
  });
}

}  // namespace fuse::cmd
