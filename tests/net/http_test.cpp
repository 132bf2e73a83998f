#include "net/http.h"

#include "tests/catch.h"

namespace fuse {
namespace {

TEST_CASE("an error becomes the wire's body and status") {
  const HttpResponse response = error_response(
      {ErrorCode::unavailable, "no host fits", {{"reason", "placement"}, {"a", "b"}}});

  CHECK(response.status == 503);
  CHECK(response.headers.get("Content-Type") == "application/json");
  CHECK(response.body == R"({"error":{"code":"unavailable","message":"no host fits",)"
                         R"("details":{"a":"b","reason":"placement"}}})");
}

TEST_CASE("each code has the status of the wire") {
  CHECK(status_of(ErrorCode::not_found) == 404);
  CHECK(status_of(ErrorCode::route_not_found) == 404);
  CHECK(status_of(ErrorCode::conflict) == 409);
  CHECK(status_of(ErrorCode::invalid_argument) == 400);
  CHECK(status_of(ErrorCode::payload_too_large) == 413);
  CHECK(status_of(ErrorCode::unauthorized) == 401);
  CHECK(status_of(ErrorCode::forbidden) == 403);
  CHECK(status_of(ErrorCode::unavailable) == 503);
  CHECK(status_of(ErrorCode::unimplemented) == 501);
  CHECK(status_of(ErrorCode::internal) == 500);
}

TEST_CASE("an unreachable host is an internal error of ours on the wire") {
  const HttpResponse response = error_response({ErrorCode::unreachable, "cannot reach it"});
  CHECK(response.status == 502);
  CHECK(response.body == R"({"error":{"code":"internal","message":"cannot reach it"}})");
}

TEST_CASE("a message that is not UTF-8 still makes a body") {
  CHECK(error_response({ErrorCode::internal, "a\xFFz"}).body ==
        "{\"error\":{\"code\":\"internal\",\"message\":\"a\xEF\xBF\xBDz\"}}");
}

TEST_CASE("an error comes back from its answer") {
  const Error error{ErrorCode::conflict, "task already assigned", {{"vm", "fuse-1"}}};
  const HttpResponse response = error_response(error);
  const Error back = error_of_answer(response.status, response.body);

  CHECK(back.code == error.code);
  CHECK(back.message == error.message);
  CHECK(back.details == error.details);
}

TEST_CASE("the code of an error body counts more than the status") {
  const Error back =
      error_of_answer(403, R"({"error":{"code":"unauthorized","message":"master token"}})");
  CHECK(back.code == ErrorCode::unauthorized);
}

TEST_CASE("a text answer is an error by its status") {
  CHECK(error_of_answer(409, "vm x already exists\n").code == ErrorCode::conflict);
  CHECK(error_of_answer(409, "vm x already exists\n").message == "vm x already exists");
  CHECK(error_of_answer(404, "").message == "http 404 Not Found");
  CHECK(error_of_answer(502, "<html>").code == ErrorCode::internal);
  CHECK(error_of_answer(418, "teapot").code == ErrorCode::internal);
  CHECK(error_of_answer(400, "[1").code == ErrorCode::invalid_argument);
  CHECK(error_of_answer(500, R"({"error":"just text"})").message == R"({"error":"just text"})");
}

TEST_CASE("at most 64 KiB of an error text are used") {
  CHECK(error_of_answer(500, std::string(1U << 20U, 'x')).message.size() == 65536);
}

TEST_CASE("details of any kind come back as text") {
  const Error back = error_of_answer(
      400, R"({"error":{"code":"invalid_argument","message":"m","details":{"n":1,"s":"t"}}})");
  CHECK(back.details == std::map<std::string, std::string>{{"n", "1"}, {"s", "t"}});
}

TEST_CASE("the agent's errors are bare text") {
  const HttpResponse response = text_error_response({ErrorCode::not_found, "vm not found"});
  CHECK(response.status == 404);
  CHECK(response.body == "vm not found");
  CHECK(response.headers.get("Content-Type") == "text/plain; charset=utf-8");
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
