#pragma once

#include <map>
#include <string>
#include <string_view>

namespace fuse {

// What kind of failure an Error is.  All but `unreachable` are the codes of the
// wire (error.code of an API answer); callers branch on the code, never on
// text.
enum class ErrorCode {
  not_found,
  route_not_found,
  conflict,
  invalid_argument,
  payload_too_large,
  unauthorized,
  forbidden,
  unavailable,
  unimplemented,
  internal,
  unreachable,  // the other side did not answer; never sent on the wire
};

std::string_view to_string(ErrorCode code);

// A failure as a value: what kind, what happened in words, and, where there is
// more to say, details by name (the wire's error.details).
struct Error {
  ErrorCode code = ErrorCode::internal;
  std::string message;
  std::map<std::string, std::string> details{};
};

// The error for `errno_value` after trying `what`: ENOENT is not_found, EEXIST
// and EBUSY conflict, ECONNREFUSED unreachable, the rest internal.
// The message is "what: strerror".
Error errno_error(std::string_view what, int errno_value);

// The same error with "what: " before its message.
Error in_context(std::string_view what, Error error);

}  // namespace fuse
