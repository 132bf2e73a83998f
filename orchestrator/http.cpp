#include "orchestrator/http.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/ids.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "base/version.h"
#include "net/router.h"
#include "orchestrator/http_routes.h"
#include "orchestrator/json_text.h"

namespace fuse {

namespace {

constexpr std::string_view request_id_header = "X-Request-ID";
constexpr std::size_t most_request_id = 128;
constexpr std::string_view in_flight = "orchestrator_http_requests_in_flight";

// Letters, digits, - and _.
bool is_request_id(std::string_view text) {
  return !text.empty() && text.size() <= most_request_id &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                  c == '-' || c == '_';
         });
}

std::string request_id_of(const HttpRequest& request) {
  const std::string given = request.headers.get(request_id_header).value_or("");
  return is_request_id(given) ? given : cat("req_", random_hex(16));
}

std::vector<RoutePattern> patterns_of(const std::vector<ApiRouteEntry>& routes) {
  std::vector<RoutePattern> out;
  out.reserve(routes.size());
  for (const ApiRouteEntry& route : routes) {
    out.push_back(
        {std::string(route.method), std::string(route.pattern), std::string(route.action)});
  }
  return out;
}

// Who is known but may not is told so with the code of those who are not known:
// existing clients look at the code alone.
HttpResponse refusal_of(Error error) {
  constexpr int forbidden = 403;
  return error.details.erase("reason") == 0 ? error_response(error)
                                            : error_response(error, forbidden);
}

class Api {
 public:
  explicit Api(const ApiBackends& backends)
      : backends_(backends), routes_(all_routes()), table_(patterns_of(routes_)) {}

  [[nodiscard]] HttpResponse answer(const HttpRequest& request) const {
    const SteadyTime begun = backends_.clock.steady();
    const std::string id = request_id_of(request);
    const RouteMatch match = table_.match(request.method, request.raw_path, request.query);
    backends_.metrics.change(in_flight, 1);
    HttpResponse response = dispatch(match, request);
    backends_.metrics.change(in_flight, -1);
    response.headers.set(request_id_header, id);
    for (const auto& [name, value] : api_headers().fields()) response.headers.set(name, value);
    note(request, match, response, backends_.clock.steady() - begun);
    return response;
  }

 private:
  [[nodiscard]] HttpResponse dispatch(const RouteMatch& match, const HttpRequest& request) const {
    if (match.kind == RouteMatch::Kind::no_such_path ||
        match.kind == RouteMatch::Kind::wrong_method) {
      return unmatched_response(match, request);
    }
    const bool found = match.kind == RouteMatch::Kind::found;
    const ApiRouteEntry unknown_action{};
    const ApiRouteEntry& route = found ? routes_[match.index] : unknown_action;
    if (auto allowed = admit(route, request); !allowed) return refusal_of(allowed.error());
    if (!found) return unmatched_response(match, request);
    const std::size_t limit = api_body_limit(request);
    if (request.body.size() > limit) {
      return error_response({ErrorCode::payload_too_large, cat("request body exceeds the ", limit,
                                                               " byte limit for this endpoint")});
    }
    HttpRequest routed = request;
    routed.params = match.params;
    return route.run(backends_, routed);
  }

  [[nodiscard]] Result<void> admit(const ApiRouteEntry& route, const HttpRequest& request) const {
    if (route.access == Access::open) return {};
    if (auto done = backends_.callers.check_address(request); !done) return done;
    if (route.access == Access::anonymous) return {};
    const auto caller = backends_.callers.identify(request);
    if (!caller) return caller.error();
    if (route.access != Access::master || *caller == Caller::master) return {};
    return Error{ErrorCode::unauthorized,
                 cat(route.what, " requires the master token"),
                 {{"reason", "master"}}};
  }

  void note(const HttpRequest& request, const RouteMatch& match, const HttpResponse& response,
            std::chrono::nanoseconds time) const {
    const bool found = match.kind == RouteMatch::Kind::found;
    const std::string route = found ? std::string(routes_[match.index].pattern) : "none";
    const double seconds = std::chrono::duration<double>(time).count();
    backends_.metrics.add("orchestrator_http_requests_total",
                          {{"route", route},
                           {"method", found ? request.method : "other"},
                           {"code", std::to_string(response.status)}});
    backends_.metrics.observe("orchestrator_http_request_duration_seconds",
                              {{"route", route}, {"method", found ? request.method : "other"}},
                              seconds);
    const auto level =
        found && routes_[match.index].access == Access::open ? LogLevel::debug : LogLevel::info;
    backends_.log.write(
        level, "request",
        {{"id", response.headers.get(request_id_header).value_or("")},
         {"method", request.method},
         {"path", request.raw_path},
         {"status", std::to_string(response.status)},
         {"ms",
          std::to_string(std::chrono::duration_cast<std::chrono::milliseconds>(time).count())}});
  }

  ApiBackends backends_;
  std::vector<ApiRouteEntry> routes_;
  RouteTable table_;
};

// The end of the JSON object that begins at the first bracket; all of the text
// when it has no end.
std::size_t end_of_object(std::string_view text) {
  int depth = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;
      if (c == '"') quoted = false;
      continue;
    }
    if (c == '"') quoted = true;
    if (c == '{' || c == '[') ++depth;
    if ((c == '}' || c == ']') && --depth == 0) return i + 1;
  }
  return text.size();
}

}  // namespace

std::vector<ApiRouteEntry> all_routes() {
  std::vector<ApiRouteEntry> out;
  for (auto routes : {service_routes(), sign_in_routes(), environment_routes(), stream_routes(),
                      host_routes(), key_routes()}) {
    out.insert(out.end(), routes.begin(), routes.end());
  }
  return out;
}

HttpHandler make_api_handler(ApiBackends backends) {
  const auto api = std::make_shared<const Api>(backends);
  return [api](const HttpRequest& request) { return api->answer(request); };
}

std::size_t api_body_limit(const HttpRequest& request) {
  constexpr std::size_t large = 1U << 20U;
  constexpr std::size_t usual = 64U << 10U;
  constexpr std::size_t login = 4U << 10U;
  if (request.path == "/login") return login;
  return request.path.rfind("/v1/environments", 0) == 0 ? large : usual;
}

HttpHeaders api_headers() {
  return {{"Server", cat("fuse-orchestrator/", version())}};
}

Result<nlohmann::json> parse_body(const HttpRequest& request) {
  const std::string_view text = request.body;
  auto value = parse_json(text.substr(0, end_of_object(text)));
  if (!value) return value;
  if (!value->is_object()) {
    return Error{ErrorCode::invalid_argument, "invalid JSON body: an object is expected"};
  }
  return value;
}

HttpResponse no_content() {
  HttpResponse response;
  response.status = 204;
  return response;
}

HttpResponse json_answer(int status, const nlohmann::ordered_json& value) {
  return json_response(status, json_text(value) + "\n");
}

std::int64_t number_in(const Query& query, std::string_view name) {
  const auto number = parse_int(query.get(name).value_or(""));
  return std::max<std::int64_t>(0, number.value_or(0));
}

bool flag_in(const Query& query, std::string_view name) {
  const std::string value = query.get(name).value_or("");
  return value == "1" || equal_ignoring_case(value, "true");
}

}  // namespace fuse
