#include "base/version.h"

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>
#include <ostream>

#include "cmd/commands.h"
#include "cmd/output.h"

namespace fuse::cmd {

namespace {

int run_version(const Context& context) {
  if (context.json()) {
    print_json(context.out,
               {{"service", "fuse"}, {"version", version()}, {"build_id", build_id()}});
  } else {
    context.out << "fuse " << version() << '\n';
    if (context.options.verbose) context.out << "build " << build_id() << '\n';
  }
  return success;
}

}  // namespace

void add_version(CLI::App& app, Invocation& invocation) {
  auto* version = app.add_subcommand("version", "Print the version");
  version->callback([&invocation] {
    invocation.action = [&invocation] { return run_version(invocation.context); };
  });
}

}  // namespace fuse::cmd
