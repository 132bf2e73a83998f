#pragma once

#include <functional>
#include <iosfwd>
#include <memory>
#include <string>

#include "base/clock.h"
#include "base/host.h"
#include "base/write_apart.h"
#include "cmd/config.h"
#include "cmd/exit_codes.h"
#include "cmd/signals.h"
#include "cmd/terminal.h"
#include "net/http_client.h"
#include "orchestrator/api/environment_api.h"

namespace fuse::cmd {

enum class OutputFormat { table, json };
enum class ColourChoice { automatic, always, never };

// The options that every command takes.
struct GlobalOptions {
  OutputFormat output = OutputFormat::table;
  ColourChoice colour = ColourChoice::automatic;
  bool quiet = false;
  bool verbose = false;
  std::string context{};  // instead of the current one
  std::string config{};   // instead of the usual file of contexts
};

struct Context;

// Finds the orchestrator that commands talk to, starting the one of this
// machine when there is none, and says so on `err`.
using Connect = std::function<Result<std::unique_ptr<EnvironmentApi>>(Context& context)>;

// The same, as an HTTP client.
using Dial = std::function<Result<std::unique_ptr<HttpClient>>(Context& context)>;

// What a command works with.  Results go to `out`, everything else to `err`.
struct Context {
  std::istream& in;
  std::ostream& out;
  std::ostream& err;
  Host& host;
  Clock& clock;
  Terminal& terminal;
  Variables variables{};
  Connect connect{};
  Dial dial{};
  WatchSignals watch_signals{};
  WriteWithin write_within = write_apart;  // to files of the kernel
  fs::path directory{};                    // the working directory, absolute
  GlobalOptions options{};

  [[nodiscard]] bool json() const { return options.output == OutputFormat::json; }
  // Whether escape sequences may be sent to the stream.
  [[nodiscard]] bool colour_out() const;
  [[nodiscard]] bool colour_err() const;

  // Where the contexts are: --config, else the usual place.
  [[nodiscard]] Result<fs::path> contexts_file() const;

  // Something worth knowing, on `err`; nothing with --quiet.
  void note(std::string_view text) const;
  // Prints the error and returns the exit code that it stands for.
  int fail(const Error& error) const;
  // The same for commands that exit with a guest's code: always 125.
  int fail_own(const Error& error) const;
};

// The error as people read it: what is wrong, then its details line by line,
// then what can be done ("hint").
void print_error(std::ostream& out, const Error& error, bool colour);

}  // namespace fuse::cmd
