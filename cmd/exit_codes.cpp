#include "cmd/exit_codes.h"

namespace fuse::cmd {

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
