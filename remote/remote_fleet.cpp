#include "remote/remote_fleet.h"

#include "net/url.h"
#include "remote/api_call_detail.h"

namespace fuse {

namespace {

// A registration asks the host's agent first.
constexpr std::chrono::seconds register_timeout{60};

std::string host_path(const std::string& id) {
  return cat("/v1/hosts/", percent_encode(id));
}

std::string_view name_of(HostAction action) {
  switch (action) {
    case HostAction::cordon:
      return "cordon";
    case HostAction::uncordon:
      return "uncordon";
    case HostAction::drain:
      break;
  }
  return "drain";
}

Result<RemoteFleet::Service> parse_service(const nlohmann::json& value) {
  JsonReader reader(value, "");
  RemoteFleet::Service out{.service = reader.text("service").value_or(""),
                           .version = reader.text("version").value_or("")};
  if (auto done = reader.finish(); !done) return done.error();
  return out;
}

}  // namespace

Result<HostInfo> RemoteFleet::register_host(const RegisterHostRequest& request) {
  HttpCall call = json_call("POST", "/v1/hosts", to_json(request));
  call.timeout = register_timeout;
  const auto reply = send_call(*http_, call);
  if (!reply) return reply.error();
  return parsed_reply(*http_, *reply, &parse_host_info);
}

Result<HostPage> RemoteFleet::list_hosts(std::int64_t limit, const std::string& cursor) {
  Query query;
  if (limit > 0) query.add("limit", cat(limit));
  if (!cursor.empty()) query.add("cursor", cursor);
  const std::string encoded = query.encode();
  const auto reply = send_call(
      *http_, {.method = "GET", .target = cat("/v1/hosts", encoded.empty() ? "" : "?", encoded)});
  if (!reply) return reply.error();
  return parsed_reply(*http_, *reply, &parse_host_page);
}

Result<HostInfo> RemoteFleet::get_host(const std::string& id) {
  const auto reply = send_call(*http_, {.method = "GET", .target = host_path(id)});
  if (!reply) return reply.error();
  return parsed_reply(*http_, *reply, &parse_host_info);
}

Result<void> RemoteFleet::change_host(const std::string& id, HostAction action) {
  const auto reply = send_call(
      *http_, {.method = "POST", .target = cat(host_path(id), "?action=", name_of(action))});
  if (!reply) return reply.error();
  return {};
}

Result<void> RemoteFleet::remove_host(const std::string& id) {
  const auto reply = send_call(*http_, {.method = "DELETE", .target = host_path(id)});
  if (!reply) return reply.error();
  return {};
}

Result<Explanation> RemoteFleet::explain(const ResourceSpec& spec) {
  const auto reply =
      send_call(*http_, json_call("POST", "/v1/placements/explain", {{"spec", to_json(spec)}}));
  if (reply) return parsed_reply(*http_, *reply, &parse_explanation);
  if (reply.error().code != ErrorCode::route_not_found) return reply.error();
  return Error{ErrorCode::unimplemented,
               cat("the orchestrator at ", http_->place(), " does not explain placements")};
}

Result<NewApiKey> RemoteFleet::create_key(const std::string& label) {
  auto body = nlohmann::ordered_json::object();
  if (!label.empty()) body["label"] = label;
  const auto reply = send_call(*http_, json_call("POST", "/v1/api-keys", body));
  if (!reply) return reply.error();
  return parsed_reply(*http_, *reply, &parse_new_api_key);
}

Result<std::vector<ApiKey>> RemoteFleet::list_keys() {
  const auto reply = send_call(*http_, {.method = "GET", .target = "/v1/api-keys"});
  if (!reply) return reply.error();
  return parsed_reply(*http_, *reply, &parse_api_keys);
}

Result<void> RemoteFleet::revoke_key(const std::string& id) {
  const auto reply =
      send_call(*http_, {.method = "DELETE", .target = cat("/v1/api-keys/", percent_encode(id))});
  if (!reply) return reply.error();
  return {};
}

Result<RemoteFleet::Service> RemoteFleet::service() {
  const auto reply = send_call(*http_, {.method = "GET", .target = "/v1/version"});
  if (!reply) return reply.error();
  return parsed_reply(*http_, *reply, &parse_service);
}

Result<std::string> RemoteFleet::metrics() {
  auto reply = send_call(*http_, {.method = "GET", .target = "/metrics"});
  if (!reply) return reply.error();
  return std::move(reply->body);
}

}  // namespace fuse
