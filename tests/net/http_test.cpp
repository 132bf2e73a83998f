#include "net/http.h"

#include "net/http_date.h"
#include "tests/catch.h"

namespace fuse {
namespace {

TEST_CASE("an error becomes the wire's body and status") {
  const HttpResponse response = error_response(
      {ErrorCode::unavailable, "no host fits", {{"reason", "placement"}, {"a", "b"}}});

  CHECK(response.status == 503);
  CHECK(response.headers.get("Content-Type") == "application/json");
  CHECK(response.body == R"({"error":{"code":"unavailable","message":"no host fits",)"
                         R"("details":{"a":"b","reason":"placement"}}})"
                         "\n");
}

TEST_CASE("an unreachable host is an internal error of ours on the wire") {
  const HttpResponse response = error_response({ErrorCode::unreachable, "cannot reach it"});
  CHECK(response.status == 502);
  CHECK(response.body == R"({"error":{"code":"internal","message":"cannot reach it"}})"
                         "\n");
}

TEST_CASE("a message that is not UTF-8 still makes a body") {
  CHECK(error_response({ErrorCode::internal, "a\xFFz", {{"k", "\xFF"}}}).body ==
        "{\"error\":{\"code\":\"internal\",\"message\":\"a\xEF\xBF\xBDz\","
        "\"details\":{\"k\":\"\xEF\xBF\xBD\"}}}\n");
}

TEST_CASE("a JSON body ends in one newline") {
  CHECK(json_response(200, "{}").body == "{}\n");
  CHECK(json_response(200, "{}\n").body == "{}\n");
}

TEST_CASE("the agent's errors are bare text") {
  const HttpResponse response = text_error_response({ErrorCode::not_found, "vm not found"});
  CHECK(response.status == 404);
  CHECK(response.body == "vm not found");
  CHECK(response.headers.get("Content-Type") == "text/plain; charset=utf-8");
}

TEST_CASE("a date is written as HTTP wants it") {
  CHECK(http_date(784111777) == "Sun, 06 Nov 1994 08:49:37 GMT");
  CHECK(http_date(0) == "Thu, 01 Jan 1970 00:00:00 GMT");
}

TEST_CASE("a request value is made from a target") {
  const HttpRequest request = make_request("GET", "/v1/vm/a%2Fb?prefix=x+y");
  CHECK(request.raw_path == "/v1/vm/a%2Fb");
  CHECK(request.path == "/v1/vm/a/b");
  CHECK(request.query.get("prefix") == "x y");
  CHECK(make_request("GET", "/").query.items().empty());
}

}  // namespace
}  // namespace fuse
