#include "fusefile/schema.h"

#include <CLI/CLI.hpp>
#include <ostream>

#include "cmd/commands.h"

namespace fuse::cmd {

void add_schema(CLI::App& app, Invocation& invocation) {
  app.add_subcommand("schema", "Print the JSON Schema of Fusefiles, for editors")
      ->callback([&invocation] {
        invocation.action = [&invocation] {
          invocation.context.out << fusefile_schema();
          return success;
        };
      });
}

}  // namespace fuse::cmd
