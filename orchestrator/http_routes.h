#pragma once

#include <array>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "orchestrator/http.h"

// The routes of the HTTP API; private to this folder.
namespace fuse {

// Who may call a route; enforced where callers are told apart.
enum class Access {
  open,       // anyone
  anonymous,  // anyone from an allowed address
  user,       // a key or the master token
  master,     // the master token
};

using ApiRoute = HttpResponse (*)(const ApiBackends& backends, const HttpRequest& request);

struct ApiRouteEntry {
  std::string_view method;
  std::string_view pattern;
  std::string_view action;
  Access access = Access::user;
  ApiRoute run = nullptr;
  std::string_view what{};  // with Access::master: what "requires the master token"
};

std::vector<ApiRouteEntry> environment_routes();
std::vector<ApiRouteEntry> stream_routes();
std::vector<ApiRouteEntry> host_routes();
std::vector<ApiRouteEntry> service_routes();
std::vector<ApiRouteEntry> sign_in_routes();
std::vector<ApiRouteEntry> key_routes();
// All of these.
std::vector<ApiRouteEntry> all_routes();

// The first JSON value of a body, which must be an object.
Result<nlohmann::json> parse_body(const HttpRequest& request);

// 204.
HttpResponse no_content();

// `value` and a newline.
HttpResponse json_answer(int status, const nlohmann::ordered_json& value);

// A whole number in the query that is 0 or more; 0 when it is absent or none.
std::int64_t number_in(const Query& query, std::string_view name);

// 1 or true.
bool flag_in(const Query& query, std::string_view name);

}  // namespace fuse
