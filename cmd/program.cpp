#include "cmd/program.h"

#include <poll.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>
#include <iostream>

#include "base/clock.h"
#include "base/posix_host.h"
#include "cmd/commands.h"
#include "cmd/connect.h"
#include "cmd/exit_codes.h"
#include "cmd/signals.h"
#include "cmd/terminal.h"
#include "guest/init.h"

namespace fuse::cmd {

namespace {

// Results that could not be written out are no success; a reader that has seen
// enough is told nothing.
int unwritten() {
  pollfd output{STDOUT_FILENO, 0, 0};
  const bool reader_left = ::poll(&output, 1, 0) > 0 && (output.revents & POLLERR) != 0;
  if (reader_left) return output_closed;
  std::cerr << "error: the output could not be written: is its disk full?\n";
  return failed;
}

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
                  .dial = dial,
                  .watch_signals = watch_signals,
                  .directory = fs::current_path(ignored)};
  const int code = run(arguments, context);
  std::cout.flush();
  return std::cout.good() || code != success ? code : unwritten();
}

}  // namespace

int run_program(const std::vector<std::string>& arguments) {
  if (const auto ended = run_guest_part(arguments)) return *ended;
  return run_command_line({arguments.begin() + (arguments.empty() ? 0 : 1), arguments.end()});
}

}  // namespace fuse::cmd
