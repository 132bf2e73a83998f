#include <array>
#include <nlohmann/json.hpp>

#include "orchestrator/api/json.h"
#include "orchestrator/api/json_detail.h"

namespace fuse {

using json_detail::put;
using nlohmann::json;
using Json = nlohmann::ordered_json;

namespace {

struct Status {
  ErrorCode code;
  int status;
};
constexpr std::array<Status, 11> statuses = {{
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

std::optional<ErrorCode> code_named(std::string_view name) {
  for (const Status& entry : statuses) {
    if (to_string(entry.code) == name) return entry.code;
  }
  return std::nullopt;
}

}  // namespace

int http_status(ErrorCode code) {
  for (const Status& entry : statuses) {
    if (entry.code == code) return entry.status;
  }
  return 500;
}

ErrorCode error_code_of(int http_status) {
  for (const Status& entry : statuses) {
    if (entry.status == http_status) return entry.code;
  }
  return ErrorCode::internal;
}

Error parse_error(int status, std::string_view body) {
  const auto document = parse_json(body);
  if (document) {
    JsonReader reader(*document, "");
    const json* const object = reader.object("error");
    if (object != nullptr) {
      JsonReader fields(*object, "error");
      const std::string code = fields.text("code").value_or("");
      std::string message = fields.text("message").value_or("");
      auto details = fields.text_map("details").value_or(std::map<std::string, std::string>());
      if (fields.finish() && !code.empty()) {
        return {code_named(code).value_or(error_code_of(status)), std::move(message),
                std::move(details)};
      }
    }
  }
  constexpr std::size_t most_quoted = 300;
  const std::string_view said = trim(body).substr(0, most_quoted);
  return {error_code_of(status),
          said.empty() ? cat("HTTP ", status) : cat("HTTP ", status, ": ", valid_utf8(said))};
}

Json to_json(const Error& error) {
  Json body = {{"code", to_string(error.code)}, {"message", valid_utf8(error.message)}};
  put(body, "details", error.details);
  return {{"error", std::move(body)}};
}

}  // namespace fuse
