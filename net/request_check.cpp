#include "net/request_check.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include "base/text.h"

namespace fuse {

namespace {

Error malformed(std::string_view what) {
  return {ErrorCode::invalid_argument, cat("malformed HTTP message: ", what)};
}

bool is_token_character(char c) {
  const bool alphanumeric =
      (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return alphanumeric ||
         (c != '\0' && std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos);
}

bool is_token(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, is_token_character);
}

bool is_visible(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > 0x20 && byte != 0x7F;
}

Result<BodyFraming> framing_of(const HttpHeaders& headers) {
  const auto encodings = headers.all("Transfer-Encoding");
  const auto lengths = headers.all("Content-Length");
  if (!encodings.empty()) {
    if (!lengths.empty()) return malformed("a Content-Length beside a Transfer-Encoding");
    if (encodings.size() > 1 || !equal_ignoring_case(encodings[0], "chunked")) {
      return Error{ErrorCode::unimplemented, "transfer encodings but chunked are not supported"};
    }
    return BodyFraming{.chunked = true};
  }
  if (lengths.empty()) return BodyFraming{};
  BodyFraming framing;
  const std::string& text = lengths[0];
  const char* const end = text.data() + text.size();
  const auto [stop, failure] = std::from_chars(text.data(), end, framing.length);
  const bool number = failure == std::errc() && stop == end;
  const bool same = std::ranges::all_of(lengths, [&](const auto& other) { return other == text; });
  if (!number || !same) return Error{ErrorCode::invalid_argument, "invalid Content-Length"};
  return framing;
}

}  // namespace

Result<BodyFraming> check_request_fields(const HttpHeaders& headers, bool http_1_0) {
  for (const auto& [name, value] : headers.fields()) {
    if (!is_token(name)) return malformed("a header name that is none");
  }
  if (headers.all("Host").size() > 1) return malformed("more than one Host");
  auto framing = framing_of(headers);
  if (framing && framing->chunked && http_1_0) {
    return Error{ErrorCode::invalid_argument, "HTTP/1.0 has no chunked bodies"};
  }
  return framing;
}

std::optional<std::string> origin_form(std::string_view target) {
  if (!std::ranges::all_of(target, is_visible)) return std::nullopt;
  if (target.starts_with('/') || target == "*") return std::string(target);
  const std::string start = lowercase(target.substr(0, 8));
  if (!start.starts_with("http://") && start != "https://") return std::nullopt;
  const std::size_t authority = target.find("//") + 2;
  const std::size_t path = target.find_first_of("/?", authority);
  if (path == std::string_view::npos) return "/";
  if (target[path] == '?') return cat("/", target.substr(path));
  return std::string(target.substr(path));
}

}  // namespace fuse
