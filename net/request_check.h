#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "net/headers.h"

namespace fuse {

// How a request's body is delimited.
struct BodyFraming {
  bool chunked = false;
  std::uint64_t length = 0;
  [[nodiscard]] bool has_body() const { return chunked || length > 0; }
};

// What httplib's parser lets pass although two readers may understand it
// differently, which is how requests are smuggled past a proxy: names that are no
// tokens, several hosts, lengths that are not one number, a length beside an
// encoding.  invalid_argument, `invalid Content-Length` where it is about that;
// unimplemented for an encoding but chunked.
Result<BodyFraming> check_request_fields(const HttpHeaders& headers, bool http_1_0);

// A request's target in origin form: as it is when it begins with '/' or is "*",
// of a whole http address its path.  Nothing when it is neither, or holds blanks
// or control characters.
std::optional<std::string> origin_form(std::string_view target);

}  // namespace fuse
