#include <CLI/CLI.hpp>
#include <csignal>
#include <memory>
#include <ostream>

#include "base/text.h"
#include "cmd/arguments.h"
#include "cmd/attach_io.h"
#include "cmd/commands.h"
#include "net/attach_frames.h"

namespace fuse::cmd {

namespace {

struct ShellOptions {
  std::string id{};
  std::vector<std::string> command{};
};

// The terminal's part of a session: its size as it changes, and the signals that
// end us, after which the terminal must be as it was.
class ShellSignals {
 public:
  ShellSignals(Context& context, AttachSession& session)
      : watch_(context.watch_signals({SIGWINCH, SIGTERM, SIGHUP},
                                     [this, &context, &session](int number) {
                                       if (number == SIGWINCH) {
                                         send_size(context, session);
                                       } else {
                                         ended_by_ = number;
                                         session.close();
                                       }
                                     })) {}
  [[nodiscard]] int ended_by() const { return ended_by_; }

 private:
  static void send_size(const Context& context, AttachSession& session) {
    const WindowSize size = context.terminal.size();
    if (size.rows == 0) return;
    (void)session.write({.type = AttachFrameType::resize,
                         .payload = encode_resize({.rows = size.rows, .cols = size.cols})});
  }

  std::atomic<int> ended_by_{0};
  std::unique_ptr<SignalWatch> watch_;
};

Result<AttachEnd> talk(Context& context, AttachSession& session) {
  // Restored when this returns, whatever happens.
  std::unique_ptr<RawMode> raw;
  if (context.terminal.in_is_terminal()) {
    auto mode = context.terminal.raw_mode();
    if (!mode) return mode.error();
    raw = std::move(*mode);
  }
  const InputPump pump(session, context.terminal.input_fd());
  auto done = write_output(context, session);
  session.close();
  return done;
}

int run_shell(Context& context, ShellOptions options,
              const std::optional<std::vector<std::string>>& command) {
  if (command) {
    options.command.insert(options.command.end(), command->begin(), command->end());
  }
  const auto api = context.connect(context);
  if (!api) return context.fail_own(api.error());
  const WindowSize size = context.terminal.size();
  const auto session =
      (*api)->attach(options.id, {.cmd = options.command, .rows = size.rows, .cols = size.cols});
  if (!session) return context.fail_own(session.error());
  const ShellSignals signals(context, **session);
  const auto done = talk(context, **session);
  if (signals.ended_by() != 0) return 128 + signals.ended_by();
  if (!done) return context.fail_own(done.error());
  if (done->output_closed) return output_closed;
  if (done->exit_code) return *done->exit_code;
  return context.fail_own({ErrorCode::unreachable,
                           cat("the connection to ", options.id, " ended before the shell did")});
}

}  // namespace

void add_shell(CLI::App& app, Invocation& invocation) {
  const auto options = std::make_shared<ShellOptions>();
  auto* shell =
      app.add_subcommand("shell", "Open a shell, or another command, on a terminal there");
  shell->alias("ssh");
  add_environment_id(*shell, options->id);
  shell->add_option("COMMAND", options->command, "Instead of a login shell")->type_name("");
  shell->callback([&invocation, options] {
    invocation.takes_command = true;
    invocation.action = [&invocation, options] {
      return run_shell(invocation.context, *options, invocation.command);
    };
  });
}

}  // namespace fuse::cmd
