#include "cmd/misuse.h"

#include "cmd/output.h"

namespace fuse::cmd {

ExitCode misuse(const Context& context, const Error& error) {
  print_error(context.err, error, context.colour_err());
  return wrong_usage;
}

}  // namespace fuse::cmd
