#include "cmd/agreement.h"

#include <istream>
#include <ostream>

#include "base/text.h"

namespace fuse::cmd {

std::optional<int> not_agreed(const Context& context, const std::string& what) {
  if (!context.terminal.in_is_terminal()) {
    print_error(context.err,
                {ErrorCode::invalid_argument,
                 "nobody can be asked whether to remove it",
                 {{"hint", "say so beforehand: --yes"}}},
                context.colour_err());
    return wrong_usage;
  }
  context.err << "remove " << what << "? [y/N] " << std::flush;
  std::string answer;
  std::getline(context.in, answer);
  if (equal_ignoring_case(trim(answer), "y") || equal_ignoring_case(trim(answer), "yes")) {
    return std::nullopt;
  }
  context.note("nothing was removed");
  return failed;
}

}  // namespace fuse::cmd
