#include "net/http.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "orchestrator/api/json.h"

namespace fuse {

namespace {

constexpr auto replace_invalid = nlohmann::ordered_json::error_handler_t::replace;

}  // namespace

HttpRequest make_request(std::string method, std::string target, std::string body,
                         HttpHeaders headers) {
  HttpRequest request;
  request.method = std::move(method);
  request.target = std::move(target);
  const std::size_t mark = std::min(request.target.find('?'), request.target.size());
  request.raw_path = request.target.substr(0, mark);
  request.path = percent_decode(request.raw_path);
  if (mark < request.target.size()) {
    request.query = Query(std::string_view(request.target).substr(mark + 1));
  }
  request.body = std::move(body);
  request.headers = std::move(headers);
  return request;
}

HttpResponse json_response(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.headers.set("Content-Type", "application/json");
  response.body = std::move(body);
  if (!response.body.ends_with('\n')) response.body += '\n';
  return response;
}

HttpResponse text_response(int status, std::string body) {
  HttpResponse response;
  response.status = status;
  response.headers.set("Content-Type", "text/plain; charset=utf-8");
  response.body = std::move(body);
  return response;
}

HttpResponse error_response(const Error& error) {
  return error_response(error, http_status(error.code));
}

HttpResponse error_response(const Error& error, int status) {
  Error on_wire = error;
  if (error.code == ErrorCode::unreachable) on_wire.code = ErrorCode::internal;
  // Details may hold bytes that are not UTF-8.
  return json_response(status, to_json(on_wire).dump(-1, ' ', false, replace_invalid));
}

HttpResponse text_error_response(const Error& error) {
  return text_response(http_status(error.code), error.message);
}

}  // namespace fuse
