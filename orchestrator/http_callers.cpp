#include <nlohmann/json.hpp>

#include "base/json_reader.h"
#include "base/text.h"
#include "orchestrator/api/json.h"
#include "orchestrator/http_routes.h"

namespace fuse {

namespace {

HttpResponse with_cookie(const Result<std::string>& cookie) {
  if (!cookie) return error_response(cookie.error());
  HttpResponse response = no_content();
  if (!cookie->empty()) response.headers.set("Set-Cookie", *cookie);
  return response;
}

HttpResponse sign_in(const ApiBackends& backends, const HttpRequest& request) {
  const auto body = parse_body(request);
  if (!body) return error_response(body.error());
  JsonReader reader(*body, "");
  const std::string token = reader.text("token").value_or("");
  if (auto done = reader.finish(); !done) return error_response(done.error());
  return with_cookie(backends.callers.sign_in(request, token));
}

HttpResponse sign_out(const ApiBackends& backends, const HttpRequest& request) {
  return with_cookie(backends.callers.sign_out(request));
}

HttpResponse create_key(const ApiBackends& backends, const HttpRequest& request) {
  std::string label;
  if (!trim(request.body).empty()) {
    const auto body = parse_body(request);
    if (!body) return error_response(body.error());
    JsonReader reader(*body, "");
    label = reader.text("label").value_or("");
    if (auto done = reader.finish(); !done) return error_response(done.error());
  }
  const auto key = backends.callers.create_key(label);
  if (!key) return error_response(key.error());
  return json_answer(201, to_json(*key));
}

HttpResponse list_keys(const ApiBackends& backends, const HttpRequest& /*request*/) {
  const auto keys = backends.callers.list_keys();
  if (!keys) return error_response(keys.error());
  return json_answer(200, to_json(*keys));
}

HttpResponse revoke_key(const ApiBackends& backends, const HttpRequest& request) {
  const auto done = backends.callers.revoke_key(request.params.at("id"));
  return done ? no_content() : error_response(done.error());
}

constexpr std::string_view management = "API key management";

}  // namespace

std::vector<ApiRouteEntry> sign_in_routes() {
  return {{"POST", "/login", "", Access::anonymous, sign_in},
          {"POST", "/logout", "", Access::anonymous, sign_out}};
}

std::vector<ApiRouteEntry> key_routes() {
  return {{"POST", "/v1/api-keys", "", Access::master, create_key, management},
          {"GET", "/v1/api-keys", "", Access::master, list_keys, management},
          {"DELETE", "/v1/api-keys/{id}", "", Access::master, revoke_key, management}};
}

}  // namespace fuse
