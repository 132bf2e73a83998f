#include "base/error.h"

#include <cerrno>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace fuse {

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::not_found:
      return "not_found";
    case ErrorCode::route_not_found:
      return "route_not_found";
    case ErrorCode::conflict:
      return "conflict";
    case ErrorCode::invalid_argument:
      return "invalid_argument";
    case ErrorCode::payload_too_large:
      return "payload_too_large";
    case ErrorCode::unauthorized:
      return "unauthorized";
    case ErrorCode::forbidden:
      return "forbidden";
    case ErrorCode::unavailable:
      return "unavailable";
    case ErrorCode::unimplemented:
      return "unimplemented";
    case ErrorCode::internal:
      return "internal";
    case ErrorCode::unreachable:
      return "unreachable";
  }
  return "internal";
}

Error errno_error(std::string_view what, int errno_value) {
  ErrorCode code = ErrorCode::internal;
  switch (errno_value) {
    case ENOENT:
      code = ErrorCode::not_found;
      break;
    case EEXIST:
    case EBUSY:
      code = ErrorCode::conflict;
      break;
    case ECONNREFUSED:
    case ECONNRESET:
    case EHOSTUNREACH:
    case ENETUNREACH:
    case ETIMEDOUT:
      code = ErrorCode::unreachable;
      break;
    default:
      break;
  }
  return {code, cat(what, ": ", std::generic_category().message(errno_value))};
}

Error in_context(std::string_view what, Error error) {
  error.message = cat(what, ": ", error.message);
  return error;
}

}  // namespace fuse
