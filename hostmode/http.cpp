#include "hostmode/http.h"

#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/crypto.h"
#include "base/json_reader.h"
#include "base/text.h"
#include "base/version.h"
#include "hostmode/http_routes.h"
#include "net/router.h"

namespace fuse {

namespace {

std::vector<AgentRouteEntry> all_routes() {
  std::vector<AgentRouteEntry> out;
  for (auto routes : {host_agent_routes(), vm_routes(), guest_routes(), job_routes()}) {
    out.insert(out.end(), routes.begin(), routes.end());
  }
  return out;
}

std::vector<RoutePattern> patterns_of(const std::vector<AgentRouteEntry>& routes) {
  std::vector<RoutePattern> out;
  out.reserve(routes.size());
  for (const AgentRouteEntry& route : routes) {
    out.push_back(
        {std::string(route.method), std::string(route.pattern), std::string(route.action)});
  }
  return out;
}

class AgentApi {
 public:
  explicit AgentApi(const AgentSite& site)
      : site_(site), routes_(all_routes()), table_(patterns_of(routes_)) {}

  [[nodiscard]] HttpResponse answer(const HttpRequest& request) const {
    const SteadyTime begin = site_.clock.steady();
    const RouteMatch match = match_of(request);
    HttpResponse response = run(match, request);
    note(match, request, response.status, begin);
    return response;
  }

  // An answer that does not wait for the body.
  [[nodiscard]] std::optional<HttpResponse> early_answer(const HttpRequest& request) const {
    const SteadyTime begin = site_.clock.steady();
    const RouteMatch match = match_of(request);
    auto refused = refusal(match, request);
    if (refused) note(match, request, refused->status, begin);
    return refused;
  }

  [[nodiscard]] std::size_t body_limit(const HttpRequest& request) const {
    return request.raw_path.ends_with("/upload") ? site_.most_upload : site_.most_body;
  }

 private:
  [[nodiscard]] RouteMatch match_of(const HttpRequest& request) const {
    return table_.match(request.method, request.raw_path, request.query);
  }

  [[nodiscard]] HttpResponse run(const RouteMatch& match, const HttpRequest& request) const {
    if (auto refused = refusal(match, request)) return *std::move(refused);
    if (request.body.size() > body_limit(request)) return too_large(request, request.body.size());
    return routes_[match.index].run({site_, request, match.params});
  }

  [[nodiscard]] std::optional<HttpResponse> refusal(const RouteMatch& match,
                                                    const HttpRequest& request) const {
    if (!is_allowed(request)) return text_response(401, "unauthorized");
    if (match.kind != RouteMatch::Kind::found) return text_response(404, "not found");
    if (request.headers.has("Transfer-Encoding")) {
      return text_response(411, "chunked request bodies are not supported; send Content-Length");
    }
    const auto length = parse_int(request.headers.get("Content-Length").value_or("0"));
    if (!length || *length < 0) return text_response(400, "invalid Content-Length");
    if (static_cast<std::uint64_t>(*length) > body_limit(request)) {
      return too_large(request, static_cast<std::uint64_t>(*length));
    }
    return std::nullopt;
  }

  [[nodiscard]] bool is_allowed(const HttpRequest& request) const {
    // Over digests, so that the length of the token does not show either.
    const std::string given = request.headers.get("Authorization").value_or("");
    const std::string wanted = cat("Bearer ", site_.token);
    return !site_.token.empty() && equal_in_constant_time(sha256_hex(given), sha256_hex(wanted));
  }

  [[nodiscard]] HttpResponse too_large(const HttpRequest& request, std::uint64_t size) const {
    return text_response(413, cat("request body of ", size, " bytes exceeds the ",
                                  body_limit(request), " byte limit"));
  }

  void note(const RouteMatch& match, const HttpRequest& request, int status,
            SteadyTime begin) const {
    const auto time = site_.clock.steady() - begin;
    const bool known = match.kind == RouteMatch::Kind::found;
    const std::string_view route = known ? routes_[match.index].pattern : "other";
    site_.metrics.note_request(route, known ? routes_[match.index].method : "other", status, time);
    const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time).count();
    site_.log.info("request", {{"method", request.method},
                               {"path", request.raw_path},
                               {"status", std::to_string(status)},
                               {"ms", std::to_string(ms)},
                               {"from", request.peer.ip}});
  }

  AgentSite site_;
  std::vector<AgentRouteEntry> routes_;
  RouteTable table_;
};

}  // namespace

Result<nlohmann::json> object_of(const HttpRequest& request) {
  if (request.body.empty()) return nlohmann::json::object();
  constexpr std::string_view generic = "invalid JSON body: ";
  auto value = parse_json(request.body);
  if (!value) {
    std::string why = value.error().message;
    if (why.starts_with(generic)) why.erase(0, generic.size());
    return Error{ErrorCode::invalid_argument, cat("bad JSON: ", why)};
  }
  if (value->is_object()) return value;
  return Error{ErrorCode::invalid_argument, "bad JSON: an object is expected"};
}

HttpResponse agent_answer(int status, const nlohmann::ordered_json& value) {
  return json_response(
      status, value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

HttpResponse nothing_more() {
  HttpResponse response;
  response.status = 204;
  return response;
}

HttpHandler make_agent_handler(const AgentSite& site) {
  const auto api = std::make_shared<const AgentApi>(site);
  return [api](const HttpRequest& request) { return api->answer(request); };
}

HttpServerOptions agent_server_options(const AgentSite& site) {
  const auto api = std::make_shared<const AgentApi>(site);
  HttpServerOptions options;
  options.most_body = site.most_body;
  options.body_limit = [api](const HttpRequest& request) { return api->body_limit(request); };
  options.before_body = [api](const HttpRequest& request) { return api->early_answer(request); };
  options.error_answer = [](const Error& error) { return text_error_response(error); };
  options.headers = {{"Server", cat("fuse-agent/", version())}};
  return options;
}

}  // namespace fuse
