#include "net/router.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"

namespace fuse {

namespace {

bool is_parameter(std::string_view segment) {
  return segment.size() > 2 && segment.front() == '{' && segment.back() == '}';
}

std::string_view parameter_name(std::string_view segment) {
  return segment.substr(1, segment.size() - 2);
}

std::optional<std::map<std::string, std::string>> match_segments(
    const std::vector<std::string>& pattern, const std::vector<std::string>& path) {
  if (pattern.size() != path.size()) return std::nullopt;
  std::map<std::string, std::string> params;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const std::string segment = percent_decode(path[i]);
    if (is_parameter(pattern[i])) {
      if (segment.empty()) return std::nullopt;
      params.emplace(parameter_name(pattern[i]), segment);
    } else if (pattern[i] != segment) {
      return std::nullopt;
    }
  }
  return params;
}

std::size_t literals(const std::vector<std::string>& segments) {
  return static_cast<std::size_t>(
      std::ranges::count_if(segments, [](const std::string& s) { return !is_parameter(s); }));
}

bool method_fits(std::string_view route, std::string_view asked) {
  return route == asked || (asked == "HEAD" && route == "GET");
}

std::string joined_methods(std::vector<std::string> methods) {
  std::ranges::sort(methods);
  methods.erase(std::unique(methods.begin(), methods.end()), methods.end());
  return join(methods, ", ");
}

}  // namespace

RouteTable::RouteTable(std::vector<RoutePattern> routes) : routes_(std::move(routes)) {
  segments_.reserve(routes_.size());
  for (const RoutePattern& route : routes_) segments_.push_back(split(route.pattern, '/'));
}

RouteMatch RouteTable::match(std::string_view method, std::string_view raw_path,
                             const Query& query) const {
  const std::vector<std::string> path = split(raw_path, '/');
  const std::string action = query.get("action").value_or("");
  RouteMatch best;
  std::size_t best_literals = 0;
  bool path_known = false;
  bool method_known = false;
  std::vector<std::string> methods;
  for (std::size_t i = 0; i < routes_.size(); ++i) {
    auto params = match_segments(segments_[i], path);
    if (!params) continue;
    path_known = true;
    methods.push_back(routes_[i].method);
    if (!method_fits(routes_[i].method, method)) continue;
    // A route without an action takes any request, unless a sibling names it.
    method_known = true;
    if (!routes_[i].action.empty() && routes_[i].action != action) continue;
    const std::size_t weight = 2 * literals(segments_[i]) + (routes_[i].action.empty() ? 0 : 1);
    if (best.kind == RouteMatch::Kind::found && weight <= best_literals) continue;
    best.kind = RouteMatch::Kind::found;
    best.index = i;
    best.params = *std::move(params);
    best_literals = weight;
  }
  if (best.kind == RouteMatch::Kind::found || !path_known) return best;
  best.kind = method_known ? RouteMatch::Kind::wrong_action : RouteMatch::Kind::wrong_method;
  if (!method_known) best.allow = joined_methods(std::move(methods));
  return best;
}

HttpResponse unmatched_response(const RouteMatch& match, const HttpRequest& request) {
  switch (match.kind) {
    case RouteMatch::Kind::wrong_method: {
      HttpResponse response;
      response.status = 405;
      response.headers.set("Allow", match.allow);
      return response;
    }
    case RouteMatch::Kind::wrong_action:
      return error_response(
          {ErrorCode::invalid_argument, "missing or unknown action query parameter"});
    case RouteMatch::Kind::found:
    case RouteMatch::Kind::no_such_path:
      break;
  }
  return error_response(
      {ErrorCode::route_not_found, cat("no such route: ", request.method, " ", request.path)});
}

}  // namespace fuse
