#include "net/http.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/json_reader.h"
#include "base/text.h"

namespace fuse {

namespace {

constexpr std::size_t most_error_text = 64U << 10U;

struct CodeStatus {
  ErrorCode code;
  int status;
};

// The first code of a status is the one it stands for in an answer without one.
constexpr std::array<CodeStatus, 11> statuses = {{
    {ErrorCode::not_found, 404},
    {ErrorCode::route_not_found, 404},
    {ErrorCode::conflict, 409},
    {ErrorCode::invalid_argument, 400},
    {ErrorCode::payload_too_large, 413},
    {ErrorCode::unauthorized, 401},
    {ErrorCode::forbidden, 403},
    {ErrorCode::unavailable, 503},
    {ErrorCode::unimplemented, 501},
    {ErrorCode::internal, 500},
    {ErrorCode::unreachable, 502},
}};

std::optional<ErrorCode> code_of_name(std::string_view name) {
  for (const CodeStatus& row : statuses) {
    if (row.code != ErrorCode::unreachable && to_string(row.code) == name) return row.code;
  }
  return std::nullopt;
}

// The Error in a JSON error body; nothing when it is not one.
std::optional<Error> error_of_json(int status, std::string_view body) {
  const auto json = parse_json(body);
  if (!json || !json->is_object()) return std::nullopt;
  JsonReader top(*json, "");
  const nlohmann::json* const inner = top.object("error");
  if (inner == nullptr) return std::nullopt;
  JsonReader reader(*inner, "error");
  Error error;
  error.code = code_of_name(reader.text("code").value_or("")).value_or(code_of_status(status));
  error.message = reader.text("message").value_or("");
  if (const nlohmann::json* const details = reader.object("details"); details != nullptr) {
    for (const auto& [name, value] : details->items()) {
      error.details[name] = value.is_string() ? value.get<std::string>() : value.dump();
    }
  }
  if (error.message.empty()) error.message = cat("http ", status);
  return error;
}

}  // namespace

HttpRequest make_request(std::string method, std::string target, std::string body,
                         HttpHeaders headers) {
  HttpRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  const std::size_t mark = std::min(request.target.find('?'), request.target.size());
  request.raw_path = request.target.substr(0, mark);
  request.path = percent_decode(request.raw_path);
  if (mark < request.target.size()) {
    request.query = Query(std::string_view(request.target).substr(mark + 1));
  }
  request.body = std::move(body);
  request.headers = std::move(headers);
  return request;
}

HttpResponse json_response(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.headers.set("Content-Type", "application/json");
  response.body = std::move(body);
  return response;
}

HttpResponse text_response(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.headers.set("Content-Type", "text/plain; charset=utf-8");
  response.body = std::move(body);
  return response;
}

int status_of(ErrorCode code) {
  const auto* const row =
      std::ranges::find_if(statuses, [&](const CodeStatus& r) { return r.code == code; });
  return row == statuses.end() ? 500 : row->status;
}

ErrorCode code_of_status(int status) {
  const auto* const row =
      std::ranges::find_if(statuses, [&](const CodeStatus& r) { return r.status == status; });
  // A gateway's 502 and 504 are somebody's answer all the same.
  if (row == statuses.end() || row->code == ErrorCode::unreachable) return ErrorCode::internal;
  return row->code;
}

HttpResponse error_response(const Error& error) {
  return error_response(error, status_of(error.code));
}

HttpResponse error_response(const Error& error, int status) {
  const ErrorCode code = error.code == ErrorCode::unreachable ? ErrorCode::internal : error.code;
  nlohmann::ordered_json inner;
  inner["code"] = to_string(code);
  inner["message"] = valid_utf8(error.message);
  for (const auto& [name, value] : error.details) {
    inner["details"][valid_utf8(name)] = valid_utf8(value);
  }
  nlohmann::ordered_json outer;
  outer["error"] = std::move(inner);
  return json_response(status, outer.dump());
}

HttpResponse text_error_response(const Error& error) {
  return text_response(status_of(error.code), error.message);
}

Error error_of_answer(int status, std::string_view body) {
  const std::string_view text = body.substr(0, most_error_text);
  if (auto error = error_of_json(status, text)) return *std::move(error);
  const std::string message = valid_utf8(trim(text));
  return {code_of_status(status),
          message.empty() ? cat("http ", status, " ", reason_phrase(status)) : message};
}

std::string_view reason_phrase(int status) {
  struct Name {
    int status;
    std::string_view name;
  };
  static constexpr std::array<Name, 34> names = {{
      {100, "Continue"},
      {101, "Switching Protocols"},
      {200, "OK"},
      {201, "Created"},
      {202, "Accepted"},
      {204, "No Content"},
      {206, "Partial Content"},
      {301, "Moved Permanently"},
      {302, "Found"},
      {303, "See Other"},
      {304, "Not Modified"},
      {307, "Temporary Redirect"},
      {308, "Permanent Redirect"},
      {400, "Bad Request"},
      {401, "Unauthorized"},
      {403, "Forbidden"},
      {404, "Not Found"},
      {405, "Method Not Allowed"},
      {408, "Request Timeout"},
      {409, "Conflict"},
      {410, "Gone"},
      {411, "Length Required"},
      {412, "Precondition Failed"},
      {413, "Payload Too Large"},
      {415, "Unsupported Media Type"},
      {417, "Expectation Failed"},
      {429, "Too Many Requests"},
      {431, "Request Header Fields Too Large"},
      {500, "Internal Server Error"},
      {501, "Not Implemented"},
      {502, "Bad Gateway"},
      {503, "Service Unavailable"},
      {504, "Gateway Timeout"},
      {505, "HTTP Version Not Supported"},
  }};
  const auto* const found =
      std::ranges::find_if(names, [&](const Name& n) { return n.status == status; });
  return found == names.end() ? "Status" : found->name;
}

}  // namespace fuse
