#include "net/router.h"

#include "tests/catch.h"

namespace fuse {
namespace {

using Kind = RouteMatch::Kind;
using Params = std::map<std::string, std::string>;

const RouteTable& table() {
  static const RouteTable routes({
      {"GET", "/v1/environments", ""},                // 0
      {"POST", "/v1/environments", ""},               // 1
      {"GET", "/v1/environments/{vmId}", ""},         // 2
      {"POST", "/v1/environments/{vmId}", "exec"},    // 3
      {"POST", "/v1/environments/{vmId}", "drain"},   // 4
      {"GET", "/v1/environments/{vmId}/events", ""},  // 5
      {"GET", "/v1/environments/special", ""},        // 6
      {"DELETE", "/v1/{kind}/{id}", ""},              // 7
      {"GET", "/", ""},                               // 8
      {"POST", "/v1/snapshots/{id}", ""},             // 9
      {"POST", "/v1/snapshots/{id}", "restore"},      // 10
  });
  return routes;
}

RouteMatch match(const std::string& method, const std::string& target) {
  const HttpRequest request = make_request(method, target);
  return table().match(request.method, request.raw_path, request.query);
}

TEST_CASE("a route is found by method and path") {
  CHECK(match("GET", "/v1/environments").index == 0);
  CHECK(match("POST", "/v1/environments?x=1").index == 1);
  CHECK(match("GET", "/").index == 8);
  CHECK(match("GET", "/v1/environments/fuse-a/events").index == 5);
}

TEST_CASE("a parameter takes one segment, decoded") {
  const RouteMatch found = match("GET", "/v1/environments/a%2Fb%20c");
  REQUIRE(found.kind == Kind::found);
  CHECK(found.index == 2);
  CHECK(found.params == Params{{"vmId", "a/b c"}});

  CHECK(match("DELETE", "/v1/hosts/h1").params == Params{{"kind", "hosts"}, {"id", "h1"}});
}

TEST_CASE("the route with more literal segments wins") {
  CHECK(match("GET", "/v1/environments/special").index == 6);
  CHECK(match("GET", "/v1/environments/other").index == 2);
}

TEST_CASE("a route with an action wants exactly that") {
  CHECK(match("POST", "/v1/environments/x?action=exec").index == 3);
  CHECK(match("POST", "/v1/environments/x?a=b&action=drain").index == 4);
  CHECK(match("POST", "/v1/environments/x?action=fly").kind == Kind::wrong_action);
  CHECK(match("POST", "/v1/environments/x").kind == Kind::wrong_action);
}

TEST_CASE("a route without an action stands beside those with one") {
  CHECK(match("POST", "/v1/snapshots/s").index == 9);
  CHECK(match("POST", "/v1/snapshots/s?action=restore").index == 10);
}

TEST_CASE("an unknown path is told from a wrong method") {
  CHECK(match("GET", "/v2").kind == Kind::no_such_path);
  CHECK(match("GET", "/v1/environments/").kind == Kind::no_such_path);
  CHECK(match("GET", "//v1/environments").kind == Kind::no_such_path);
  CHECK(match("PUT", "/v1/environments").kind == Kind::wrong_method);
  CHECK(match("PUT", "/v1/environments").allow == "GET, POST");
}

TEST_CASE("HEAD takes the route of GET") {
  CHECK(match("HEAD", "/v1/environments").index == 0);
}

TEST_CASE("what matched no route is answered as the wire says") {
  const HttpRequest unknown = make_request("GET", "/v9/x%20y");
  const HttpResponse missing =
      unmatched_response(table().match(unknown.method, unknown.raw_path, unknown.query), unknown);
  CHECK(missing.status == 404);
  CHECK(missing.body ==
        R"({"error":{"code":"route_not_found","message":"no such route: GET /v9/x y"}})"
        "\n");

  const HttpRequest wrong = make_request("PUT", "/v1/environments");
  const HttpResponse refused =
      unmatched_response(table().match(wrong.method, wrong.raw_path, wrong.query), wrong);
  CHECK(refused.status == 405);
  CHECK(refused.body.empty());
  CHECK(refused.headers.get("Allow") == "GET, POST");

  const HttpRequest action = make_request("POST", "/v1/environments/x");
  const HttpResponse bad =
      unmatched_response(table().match(action.method, action.raw_path, action.query), action);
  CHECK(bad.status == 400);
  CHECK(bad.body == R"({"error":{"code":"invalid_argument",)"
                    R"("message":"missing or unknown action query parameter"}})"
                    "\n");
}

}  // namespace
}  // namespace fuse
