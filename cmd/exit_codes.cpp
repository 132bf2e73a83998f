#include "cmd/exit_codes.h"

#include <algorithm>

namespace fuse::cmd {

bool exits_with_guest_code(std::string_view command) {
  static constexpr std::array<std::string_view, 4> names = {"run", "exec", "shell", "ssh"};
  return std::ranges::find(names, command) != names.end();
}

ExitCode exit_code_of(const Error& error) {
  switch (error.code) {
    case ErrorCode::unreachable:
      return not_reached;
    case ErrorCode::unauthorized:
    case ErrorCode::forbidden:
      return not_allowed;
    case ErrorCode::conflict:
      return in_conflict;
    case ErrorCode::unavailable: {
      const auto reason = error.details.find("reason");
      return reason != error.details.end() && reason->second == "placement" ? no_placement
                                                                            : not_reached;
    }
    case ErrorCode::not_found:
    case ErrorCode::route_not_found:
    case ErrorCode::invalid_argument:
    case ErrorCode::payload_too_large:
    case ErrorCode::unimplemented:
    case ErrorCode::internal:
      return failed;
  }
  return failed;
}

}  // namespace fuse::cmd
