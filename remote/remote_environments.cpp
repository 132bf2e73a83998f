#include "remote/remote_environments.h"

#include <algorithm>
#include <utility>

#include "net/attach_frames.h"
#include "net/attach_session.h"
#include "net/url.h"
#include "remote/api_call_detail.h"

namespace fuse {

namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// A create without "Prefer: respond-async" is answered within 50 s.
constexpr milliseconds create_timeout = seconds(90);
// What a call takes beyond the time the command itself may run.
constexpr milliseconds exec_margin = seconds(30);
constexpr milliseconds default_exec_time = seconds(60);
constexpr milliseconds longest_exec_time = seconds(600);
// Ending a VM fetches the rest of its log first.
constexpr milliseconds destroy_timeout = seconds(180);

std::string path_of(const std::string& id) {
  return cat("/v1/environments/", percent_encode(id));
}

}  // namespace

RemoteEnvironments::RemoteEnvironments(std::unique_ptr<HttpClient> http, Clock& clock,
                                       RemoteOptions options)
    : http_(std::move(http)), clock_(clock), options_(std::move(options)) {}

Result<HttpReply> RemoteEnvironments::send(const HttpCall& call) {
  return send_call(*http_, call);
}

Result<HttpReply> RemoteEnvironments::send_again(const HttpCall& call) {
  auto reply = send(call);
  if (reply || reply.error().code != ErrorCode::unreachable || !options_.revive) return reply;
  if (const auto revived = options_.revive(); !revived) return revived.error();
  return send(call);
}

Result<Environment> RemoteEnvironments::create(const CreateEnvironmentRequest& request,
                                               const CreateOptions& options) {
  HttpCall call = json_call("POST", "/v1/environments", to_json(request));
  call.timeout = create_timeout;
  if (options.respond_async) call.headers.set("Prefer", "respond-async");
  const auto reply = send(call);
  if (!reply) return reply.error();
  return parsed_reply(*http_, *reply, &parse_environment);
}

Result<EnvironmentPage> RemoteEnvironments::list(const EnvironmentFilter& filter) {
  Query query;
  const auto add = [&query](std::string name, const std::string& value) {
    if (!value.empty()) query.add(std::move(name), value);
  };
  add("task_id", filter.task_id);
  add("state", filter.state);
  add("host_id", filter.host_id);
  if (filter.include_ended) query.add("include", "ended");
  if (filter.limit > 0) query.add("limit", cat(filter.limit));
  add("cursor", filter.cursor);
  const std::string encoded = query.encode();
  const auto reply = send_again(
      {.method = "GET", .target = cat("/v1/environments", encoded.empty() ? "" : "?", encoded)});
  if (!reply) return reply.error();
  return parsed_reply(*http_, *reply, &parse_environment_page);
}

Result<Environment> RemoteEnvironments::get(const std::string& id, bool include_ended) {
  const auto reply = send_again(
      {.method = "GET", .target = cat(path_of(id), include_ended ? "?include=ended" : "")});
  if (!reply) return reply.error();
  return parsed_reply(*http_, *reply, &parse_environment);
}

Result<void> RemoteEnvironments::destroy(const std::string& id) {
  const HttpCall call{.method = "DELETE", .target = path_of(id), .timeout = destroy_timeout};
  const auto reply = send(call);
  if (reply) return {};
  if (reply.error().code != ErrorCode::unreachable || !options_.revive) return reply.error();
  // It goes on with what it had begun; if it was done already, it is gone now.
  if (const auto revived = options_.revive(); !revived) return revived.error();
  const auto again = send(call);
  if (again) return {};
  const bool gone = again.error().code == ErrorCode::not_found && get(id, true).has_value();
  return gone ? Result<void>() : again.error();
}

Result<ExecResult> RemoteEnvironments::exec(const std::string& id, const ExecRequest& request) {
  HttpCall call = json_call("POST", cat(path_of(id), "?action=exec"), to_json(request));
  const milliseconds wanted =
      request.timeout_ms <= 0 ? default_exec_time : milliseconds(request.timeout_ms);
  call.timeout = std::min(wanted, longest_exec_time) + exec_margin;
  const auto reply = send(call);
  if (!reply) return reply.error();
  return parsed_reply(*http_, *reply, &parse_exec_result);
}

Result<std::unique_ptr<AttachSession>> RemoteEnvironments::attach(const std::string& id,
                                                                  const AttachRequest& request) {
  const HttpCall call{.method = "GET",
                      .target = cat(path_of(id), "/attach?", attach_query(request).encode())};
  auto reply = http_->upgrade(call, attach_protocol);
  if (!reply) return reply.error();
  if (reply->stream == nullptr) return parse_error(reply->reply.status, reply->reply.body);
  return make_attach_session(std::move(reply->stream));
}

Result<void> RemoteEnvironments::stop_job(const std::string& id) {
  const auto reply = send_again({.method = "POST", .target = cat(path_of(id), "?action=stop")});
  if (!reply) return reply.error();
  return {};
}

Result<Environment> RemoteEnvironments::drain(const std::string& id) {
  const auto reply = send({.method = "POST", .target = cat(path_of(id), "?action=drain")});
  if (!reply) return reply.error();
  return parsed_reply(*http_, *reply, &parse_environment);
}

Result<void> RemoteEnvironments::rotate_token(const std::string& id) {
  const auto reply = send({.method = "POST", .target = cat(path_of(id), "?action=rotate-token")});
  if (!reply) return reply.error();
  return {};
}

}  // namespace fuse
