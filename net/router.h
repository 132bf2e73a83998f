#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "net/http.h"

namespace fuse {

// One route: a segment of the pattern in braces takes any one non-empty segment
// of the path ("/v1/environments/{vmId}").  With `action`, the route also wants
// ?action= to be exactly that.
struct RoutePattern {
  std::string method{};
  std::string pattern{};
  std::string action{};
};

struct RouteMatch {
  enum class Kind {
    found,
    no_such_path,  // 404 route_not_found
    wrong_method,  // 405
    wrong_action,  // 400: the path and method exist with other actions only
  };
  Kind kind = Kind::no_such_path;
  std::size_t index = 0;  // with `found`: into the table's routes
  std::map<std::string, std::string> params{};
  std::string allow{};  // with `wrong_method`: "GET, POST"
};

// An ordered list of routes.  Matching looks at the encoded path, so that an
// encoded slash stays inside its segment; a HEAD request takes the GET route.
// Of several that match, the one with more literal segments wins.
class RouteTable {
 public:
  explicit RouteTable(std::vector<RoutePattern> routes);

  [[nodiscard]] RouteMatch match(std::string_view method, std::string_view raw_path,
                                 const Query& query) const;
  [[nodiscard]] const std::vector<RoutePattern>& routes() const { return routes_; }

 private:
  std::vector<RoutePattern> routes_;
  std::vector<std::vector<std::string>> segments_;
};

// The answer to a request that matched no route: 404 `no such route: METHOD
// PATH`, 405 with an empty body and Allow, or 400 `missing or unknown action
// query parameter`.
HttpResponse unmatched_response(const RouteMatch& match, const HttpRequest& request);

}  // namespace fuse
