#include "cmd/program.h"

#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iostream>

#include "base/clock.h"
#include "base/posix_host.h"
#include "cmd/commands.h"
#include "cmd/connect.h"
#include "cmd/signals.h"
#include "cmd/terminal.h"
#include "guest/init.h"

namespace fuse::cmd {

namespace {

int run_command_line(const std::vector<std::string>& arguments) {
  // A pipe that nobody reads is an error of the write that meets it, no more.
  std::signal(SIGPIPE, SIG_IGN);
  PosixHost host;
  SystemClock clock;
  PosixTerminal terminal;
  std::error_code ignored;
  Context context{.in = std::cin,
                  .out = std::cout,
                  .err = std::cerr,
                  .host = host,
                  .clock = clock,
                  .terminal = terminal,
                  .variables = process_variables(),
                  .connect = connect,
                  .watch_signals = watch_signals,
                  .directory = fs::current_path(ignored)};
  const int code = run(arguments, context);
  std::cout.flush();
  return code;
}

}  // namespace

int run_program(const std::vector<std::string>& arguments) {
  const bool is_guest_init =
      ::getpid() == 1 && !arguments.empty() && fs::path(arguments.front()).filename() == "init";
  if (is_guest_init) run_guest_init();
  return run_command_line({arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end()});
}

}  // namespace fuse::cmd
