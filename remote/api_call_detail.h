#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "base/json_reader.h"
#include "base/text.h"
#include "net/http_client.h"
#include "orchestrator/api/json.h"

// Shared by the clients of the orchestrator's API; private to this folder.
namespace fuse {

inline HttpCall json_call(std::string method, std::string target,
                          const nlohmann::ordered_json& body) {
  HttpCall call{.method = std::move(method), .target = std::move(target)};
  call.headers.set("Content-Type", "application/json");
  call.body = body.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return call;
}

// The reply when its status is 2xx, else the error it carries.
inline Result<HttpReply> send_call(HttpClient& http, const HttpCall& call) {
  auto reply = http.send(call);
  if (!reply) return reply;
  if (reply->status >= 200 && reply->status < 300) return reply;
  return parse_error(reply->status, reply->body);
}

// An answer that should be a T and is not: it is not the server we think it is.
inline Error answer_not_understood(const HttpClient& http, const Error& error) {
  return {ErrorCode::internal,
          cat(http.place(), " gave an answer that is not understood: ", error.message)};
}

template <class T>
Result<T> parsed_reply(const HttpClient& http, const HttpReply& reply,
                       Result<T> (*parse)(const nlohmann::json&)) {
  const auto json = parse_json(reply.body);
  if (!json) return answer_not_understood(http, json.error());
  auto value = parse(*json);
  if (!value) return answer_not_understood(http, value.error());
  return value;
}

}  // namespace fuse
