#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/headers.h"

namespace fuse {

struct RequestHead {
  std::string method{};
  std::string target{};  // origin form: begins with '/', or is "*"
  bool http_1_0 = false;
  HttpHeaders headers{};
};

struct ResponseHead {
  int status = 0;
  HttpHeaders headers{};
};

// Where the head that begins `bytes` ends: behind its blank line.  Looks from
// `from` on, for a caller that has looked before.
std::optional<std::size_t> head_end(std::string_view bytes, std::size_t from = 0);

// A head with its blank line.  Strict: lines end with CRLF, names are tokens,
// values hold no control characters, nothing is folded.  Errors are
// invalid_argument, or unimplemented for another version than 1.0 and 1.1.
Result<RequestHead> parse_request_head(std::string_view head);
Result<ResponseHead> parse_response_head(std::string_view head);

// How a message's body is delimited.
struct BodyFraming {
  enum class Kind { none, length, chunked };
  Kind kind = Kind::none;
  std::uint64_t length = 0;
};

// invalid_argument `invalid Content-Length` when it is not one number, or for a
// length beside a transfer encoding; unimplemented for an encoding but chunked.
Result<BodyFraming> framing_of(const HttpHeaders& headers);

// A start line and fields as bytes, with the blank line.  Line ends in values
// become blanks, so that no value can add a field.
std::string encode_head(std::string_view start_line, const HttpHeaders& headers);

}  // namespace fuse
