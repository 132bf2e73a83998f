#include "net/http_head.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace fuse {

namespace {

constexpr std::string_view line_end = "\r\n";
constexpr std::string_view blank_line = "\r\n\r\n";

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

bool is_field_character(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return c == '\t' || (byte >= 0x20 && byte != 0x7F);
}

bool is_visible(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte > 0x20 && byte != 0x7F;
}

// The next line of `rest` without its end; `rest` goes behind it.
std::string_view take_line(std::string_view& rest) {
  const std::size_t end = rest.find(line_end);
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(std::min(line.size() + line_end.size(), rest.size()));
  return line;
}

Result<HttpHeaders> parse_fields(std::string_view lines) {
  HttpHeaders headers;
  while (true) {
    const std::string_view line = take_line(lines);
    if (line.empty()) return headers;
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos) return malformed("a header line without a colon");
    const std::string_view name = line.substr(0, colon);
    const std::string_view value = trim(line.substr(colon + 1));
    if (!is_token(name)) return malformed("a header name that is none");
    if (!std::ranges::all_of(value, is_field_character)) {
      return malformed("a control character in a header");
    }
    headers.add(std::string(name), std::string(value));
  }
}

// Origin form as it is; the path of an absolute one, which proxies send.
std::optional<std::string> origin_form(std::string_view target) {
  if (!std::ranges::all_of(target, is_visible)) return std::nullopt;
  const std::string_view whole = target.substr(0, target.find('#'));
  if (whole.starts_with('/') || whole == "*") return std::string(whole);
  const std::string start = lowercase(whole.substr(0, 8));
  if (!start.starts_with("http://") && start != "https://") return std::nullopt;
  const std::size_t authority = whole.find("//") + 2;
  const std::size_t path = whole.find_first_of("/?", authority);
  if (path == std::string_view::npos) return "/";
  if (whole[path] == '?') return cat("/", whole.substr(path));
  return std::string(whole.substr(path));
}

}  // namespace

std::optional<std::size_t> head_end(std::string_view bytes, std::size_t from) {
  const std::size_t back = std::min(from, blank_line.size() - 1);
  const std::size_t found = bytes.find(blank_line, from - back);
  if (found == std::string_view::npos) return std::nullopt;
  return found + blank_line.size();
}

Result<RequestHead> parse_request_head(std::string_view head) {
  const std::string_view line = take_line(head);
  const std::size_t first = line.find(' ');
  const std::size_t last = line.rfind(' ');
  if (first == std::string_view::npos || first == last) return malformed("its first line");
  RequestHead request;
  request.method = line.substr(0, first);
  if (!is_token(request.method)) return malformed("its method");
  const std::string_view version = line.substr(last + 1);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") {
    if (!version.starts_with("HTTP/")) return malformed("its version");
    return Error{ErrorCode::unimplemented, "only HTTP/1.1 and HTTP/1.0 are spoken here"};
  }
  request.http_1_0 = version == "HTTP/1.0";
  auto target = origin_form(line.substr(first + 1, last - first - 1));
  if (!target) return malformed("its target");
  request.target = *std::move(target);
  auto headers = parse_fields(head);
  if (!headers) return headers.error();
  request.headers = *std::move(headers);
  if (request.headers.all("Host").size() > 1) return malformed("more than one Host");
  return request;
}

Result<ResponseHead> parse_response_head(std::string_view head) {
  const std::string_view line = take_line(head);
  // "HTTP/1.1 101 Switching Protocols"; the words may be missing.
  constexpr std::size_t status_at = 9;
  constexpr std::size_t status_size = 3;
  if (!line.starts_with("HTTP/1.") || line.size() < status_at + status_size ||
      line[status_at - 1] != ' ') {
    return malformed("its first line");
  }
  const auto status = parse_int(line.substr(status_at, status_size));
  const bool apart = line.size() == status_at + status_size || line[status_at + status_size] == ' ';
  if (!status || *status < 100 || !apart) return malformed("its status");
  auto headers = parse_fields(head);
  if (!headers) return headers.error();
  return ResponseHead{static_cast<int>(*status), *std::move(headers)};
}

Result<BodyFraming> framing_of(const HttpHeaders& headers) {
  const auto encodings = headers.all("Transfer-Encoding");
  const auto lengths = headers.all("Content-Length");
  if (!encodings.empty()) {
    if (!lengths.empty()) return malformed("a Content-Length beside a Transfer-Encoding");
    if (encodings.size() > 1 || !equal_ignoring_case(encodings[0], "chunked")) {
      return Error{ErrorCode::unimplemented, "transfer encodings but chunked are not supported"};
    }
    return BodyFraming{BodyFraming::Kind::chunked, 0};
  }
  if (lengths.empty()) return BodyFraming{};
  const Error invalid{ErrorCode::invalid_argument, "invalid Content-Length"};
  std::uint64_t length = 0;
  const std::string& text = lengths[0];
  const auto [stop, failure] = std::from_chars(text.data(), text.data() + text.size(), length);
  const bool number = failure == std::errc() && stop == text.data() + text.size() && !text.empty();
  const bool same = std::ranges::all_of(lengths, [&](const auto& other) { return other == text; });
  if (!number || !same) return invalid;
  return BodyFraming{length == 0 ? BodyFraming::Kind::none : BodyFraming::Kind::length, length};
}

std::string encode_head(std::string_view start_line, const HttpHeaders& headers) {
  std::string out = cat(start_line, line_end);
  for (const auto& [name, value] : headers.fields()) {
    std::string clean = value;
    std::ranges::replace_if(
        clean, [](char c) { return c == '\r' || c == '\n' || c == '\0'; }, ' ');
    out += cat(name, ": ", clean, line_end);
  }
  out += line_end;
  return out;
}

}  // namespace fuse
